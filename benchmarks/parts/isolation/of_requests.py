"""Cases that the attacker tries by the API; each returns what leaked, or nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from benchmarks.parts.isolation.two_tenants import MARKER, TwoTenants
from berth_client import calls
from cli.api.http import part
from cli.errors import BadInput, CliError, NotFound, Refused, TooManyRequests
from cli.input.job_file import read
from cli.input.manifest import read_manifest

STREAMS = 24
"""More than a key may open."""
OUT_OF_ROOT = "escaped-by-red"


def refused(attempt: Callable[[], object], *errors: type[CliError]) -> str:
    """Return that an attempt was not refused, or how it was refused instead."""
    try:
        answer = attempt()
    except errors:
        return ""
    except CliError as error:
        return f"another refusal: {error}"
    return f"it was accepted: {str(answer)[:80]}"


def names_a_secret_of_another_tenant(tenants: TwoTenants) -> str:
    """Blue's secret is unknown to red, and its value is in no answer."""
    tenants.blue.put("/v1/secrets/token", {"value": MARKER})
    listed = str(tenants.red.get("/v1/secrets"))
    if MARKER in listed or "token" in listed:
        return f"it is listed: {listed[:80]}"
    env = {"STOLEN": "secret://token"}
    return refused(lambda: tenants.submit(tenants.red, "echo $STOLEN", env=env), BadInput)


def sets_a_secret_of_another_tenant(tenants: TwoTenants) -> str:
    body, of = {"value": "x"}, {"tenant": "blue"}
    return refused(lambda: tenants.red.put("/v1/secrets/token", body, of), BadInput, Refused)


def cancels_a_job_of_another_tenant(tenants: TwoTenants) -> str:
    path = f"/v1/jobs/{part(tenants.neighbour)}/cancel"
    return refused(lambda: tenants.red.post(path, {}), NotFound)


def reads_output_of_another_tenant(tenants: TwoTenants) -> str:
    return refused(lambda: tenants.red.logs(tenants.neighbour), NotFound)


def reads_a_job_of_another_tenant(tenants: TwoTenants) -> str:
    return refused(lambda: tenants.red.get(f"/v1/jobs/{part(tenants.neighbour)}"), NotFound)


def submits_as_another_tenant(tenants: TwoTenants) -> str:
    body = {"tenant": "blue", "spec": {"name": "x", "command": ["true"]}}
    return refused(lambda: tenants.red.post("/v1/jobs", body), BadInput, Refused)


def claims_the_class_of_operators(tenants: TwoTenants) -> str:
    """The answer comes from admission, as a refused command."""
    spec = {"priority_class": "system", "guaranteed_s": 1e9}
    return refused(lambda: _decided(tenants, **spec), Refused)


def _decided(tenants: TwoTenants, **spec: object) -> object:
    body = {"pool": tenants.pool, "spec": {"name": "x", "command": ["true"], **spec}}
    receipt = tenants.red.post("/v1/jobs", body)
    from cli.api.answers import await_answer

    return await_answer(tenants.red, receipt)


def configures_the_pool(tenants: TwoTenants) -> str:
    path = f"/v1/pools/{part(tenants.pool)}"
    return refused(lambda: tenants.red.patch(path, {"terminals": True}), Refused)


def opens_streams_without_end(tenants: TwoTenants) -> str:
    """A key has its number of streams, and the other tenant still gets one."""
    opened = 0
    with ExitStack() as streams:
        try:
            for _ in range(STREAMS):
                stream = tenants.red.stream("/v1/events", alive=True)
                streams.callback(stream.close)  # type: ignore[attr-defined]
                next(stream)
                opened += 1
        except TooManyRequests:
            pass
        if opened == STREAMS:
            return f"{opened} streams of one key are open"
        other = tenants.blue.stream("/v1/events", alive=True)
        streams.callback(other.close)  # type: ignore[attr-defined]
        try:
            next(other)
        except CliError as error:
            return f"another tenant gets no stream: {error}"
    return ""


def uploads_links_out_of_its_root(tenants: TwoTenants) -> str:
    """An archive with links and paths that lead out of its folder writes and reads nothing."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(tenants.node.folder)
        archive.addfile(link)
        for name in (f"out/{OUT_OF_ROOT}", f"../../../{OUT_OF_ROOT}"):
            archive.addfile(_entry(name, b"x"), io.BytesIO(b"x"))
    content = gzip.compress(packed.getvalue())
    name = hashlib.sha256(content).hexdigest()
    manifest = {"parts": [name], "size_bytes": len(content)}
    client = tenants.red
    client.send(calls.bundle(manifest, None))
    client.send(calls.bundle_part(name, content, None))
    bundle = client.send(calls.bundle(manifest, None))["bundle"]
    row, output = tenants.attack("ls -la; cat out/identity.json state/identity.json", bundle=bundle)
    escaped = [*tenants.node.on_machine(tenants.node.folder).rglob(OUT_OF_ROOT)]
    if escaped or any("secret" in line for line in output):
        return f"{escaped[:1]} {output[:3]}"
    return "" if row["phase"] in ("failed", "rejected") else f"it ended as {row['phase']}"


def _entry(name: str, content: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    return entry


def yaml_with_unknown_fields(tenants: TwoTenants) -> str:
    """A job file and a manifest with a field that nothing knows are refused by its name."""
    with tempfile.TemporaryDirectory() as folder:
        job, manifest = Path(folder) / "job.yaml", Path(folder) / "cluster.yaml"
        job.write_text("name: x\ncommand: ['true']\ngpuss: 4\n")
        manifest.write_text("kind: pool\nname: x\nsettings: {terminalss: true}\n")
        return refused(lambda: tenants.red.post("/v1/jobs", read(job)), BadInput) or refused(
            lambda: read_manifest(manifest), BadInput
        )


CASES = (
    names_a_secret_of_another_tenant,
    sets_a_secret_of_another_tenant,
    cancels_a_job_of_another_tenant,
    reads_output_of_another_tenant,
    reads_a_job_of_another_tenant,
    submits_as_another_tenant,
    claims_the_class_of_operators,
    configures_the_pool,
    opens_streams_without_end,
    uploads_links_out_of_its_root,
    yaml_with_unknown_fields,
)
