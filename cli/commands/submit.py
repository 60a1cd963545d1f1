"""`berth submit`: submit a job, and wait for its end with --wait or --follow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from cli.api.answers import api, raise_refusal, report
from cli.api.http import Api, Json
from cli.api.ids import job_id
from cli.commands.outcome import explain_failures, follow_job, mark_virtual, wait_for_ends
from cli.errors import BadInput
from cli.input.arguments import AsJson, Data
from cli.input.documents import Body, check_values
from cli.input.job_file import OBJECTS, merged, parse_pools, read, variables, with_array
from cli.input.numbers import parse_array
from cli.input.quantities import parse_memory_gib, parse_walltime_s
from cli.input.state_changes import parse_state_changes
from cli.text.output import report_line
from cli.text.reasons import holds, start_lines

SHOWN_CHARS = 200
"""Of what a job file has in place of a command."""


def submit(
    command: Annotated[
        list[str] | None, typer.Argument(help="Command of each worker, after `--`.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-f", "--file", help="Job file, JSON or YAML; - is stdin. Options override it."
        ),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant that owns the job.")] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            metavar="POOL[,POOL...]",
            help="Pool; defaults to the tenant's pool. Of several, separated by commas, the job "
            "waits in the first, and goes to another that can start it at once.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Job name.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs per worker.")] = None,
    workers: Annotated[int | None, typer.Option(help="Number of workers.")] = None,
    mem: Annotated[
        float | None,
        typer.Option(
            parser=parse_memory_gib,
            metavar="GIB",
            help="Memory per worker, in GiB; 1 if not given. 512M and 16G are sizes too.",
        ),
    ] = None,
    cpus: Annotated[
        float | None, typer.Option(help="CPU cores per worker; 1 if not given.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Variable of the workers; may be repeated. secret://NAME is the value "
            "of a secret (`berth secrets`).",
        ),
    ] = None,
    gpu_type: Annotated[
        list[str] | None, typer.Option(help="Allowed GPU type; may be repeated.")
    ] = None,
    priority: Annotated[
        str | None, typer.Option("--class", help="Priority class: system, high, normal or low.")
    ] = None,
    after: Annotated[
        list[str] | None, typer.Option(help="Job that must succeed first; may be repeated.")
    ] = None,
    array: Annotated[
        str | None,
        typer.Option(
            metavar="JOBS",
            help="Jobs of an array: their number, or their indexes such as 1-100; `%10` behind it "
            "lets 10 of them run at once.",
        ),
    ] = None,
    workdir: Annotated[
        str | None, typer.Option(help="Absolute directory of the workers on their nodes.")
    ] = None,
    upload: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder whose files each worker starts with, in its directory; a `.berthignore` "
            "in it names what is left out.",
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(help="Container image of the workers, which nodes with Podman run."),
    ] = None,
    framework: Annotated[
        str | None,
        typer.Option(
            metavar="LAUNCHER",
            help="Start the command across the gang by torchrun (a process per GPU), jax, "
            "ray (once, on a Ray cluster of the workers) or mpi (mpirun).",
        ),
    ] = None,
    walltime: Annotated[
        float | None,
        typer.Option(
            parser=parse_walltime_s,
            metavar="TIME",
            help="Longest run time: seconds, or 90m, 12h, 2d.",
        ),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Mail its user at these state changes: start, end, fail, preempt or their names, "
            "separated by commas; of an array once, at its end.",
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key; a repeated submit returns the same job.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Show states and output until the job has ended, and exit as it did; Ctrl-C "
            "leaves it running.",
        ),
    ] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Submit a job: `berth submit --tenant vision --gpus 2 -- python train.py`."""
    jobs = None if array is None else parse_array(array)
    pools = parse_pools(pool)
    around = {"tenant": tenant, "pool": pools[0] if pools else None, "idempotency_key": key}
    body = merged(
        read(file) if file else {},
        around,
        {
            "name": name,
            "command": command,
            "gang": {
                "gpus_per_worker": gpus,
                "workers": workers,
                "mem_gib_per_worker": mem,
                "cpus_per_worker": cpus,
            },
            "env": variables(env or []),
            "gpu_types": gpu_type,
            "pools": pools if len(pools) > 1 else None,
            "priority_class": priority,
            "depends_on": after,
            "workdir": workdir,
            "image": image,
            "walltime_s": walltime,
            "notify": parse_state_changes(notify, "--notify") if notify is not None else None,
        },
    )
    check_values(body, "submit")
    if jobs is not None:
        body = with_array(body, jobs)
    if follow and body.get("array_size") not in (None, 1):
        raise BadInput("--follow shows one job; --wait waits for the jobs of an array")
    named = _named(body)
    _check_workdir(named)
    if framework is not None:
        named = _with_launcher(named, framework)
    client = api(data)
    if upload is not None:
        named = _with_bundle(client, named, upload)
    ticket = client.post("/v1/jobs", _with_whole_ids(client, named))
    _report_start(ticket)
    if follow:
        raise typer.Exit(follow_job(client, ticket, as_json))
    phases: dict[str, str] = {}
    if wait:
        phases = wait_for_ends(client, ticket)
    else:
        raise_refusal(client, ticket)
    report(
        as_json, {**ticket, **({"jobs": phases} if wait else {})}, *_ticket_lines(ticket, phases)
    )
    explain_failures(client, phases)
    if phases:
        mark_virtual(client, next(iter(phases)))
    if any(phase != "succeeded" for phase in phases.values()):
        raise typer.Exit(1)


def _named(body: Body) -> Body:
    """Return the body with the name of its program, where it has none. Raises BadInput."""
    spec = cast("Body", body["spec"])
    argv = spec.get("command") or []
    if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv):
        rule = 'a list of texts is allowed, numbers in quotes, as ["sleep", "60"]'
        raise BadInput(f"command: {str(argv)[:SHOWN_CHARS]!r}; {rule}")
    if not spec.get("name"):
        if not argv:
            fields = ", ".join(sorted({*spec} - {*OBJECTS}))
            beside = f" beside {fields[:SHOWN_CHARS]}" if fields else ""
            raise BadInput(f"no command given{beside}; use -f FILE or a command after `--`")
        spec = {**spec, "name": Path(argv[0]).name or "job"}
    return {**body, "spec": spec}


def _check_workdir(body: Body) -> None:
    """Raise BadInput for a folder of this machine's current one: workers run on nodes."""
    workdir = cast("Body", body["spec"]).get("workdir")
    if isinstance(workdir, str) and workdir and not workdir.startswith("/"):
        rule = "an absolute folder of the nodes is allowed; --upload DIR brings files of this one"
        raise BadInput(f"workdir: {workdir!r}; {rule}")


def _with_launcher(body: Body, framework: str) -> Body:
    """Return the body of a job whose workers start its command by the launcher of a framework."""
    from berth_client.frameworks import BadFramework, launched

    try:
        return {**body, "spec": launched(framework, cast("Body", body["spec"]))}
    except BadFramework as error:
        raise BadInput(f"--framework: {error}") from None


def _with_bundle(client: Api, body: Body, folder: Path) -> Body:
    """Upload a folder, and return the body of a job that starts with it."""
    from berth_client.bundles import BadFolder

    tenant = body.get("tenant")
    try:
        bundle = client.upload(folder, str(tenant) if tenant else None, report_line)
    except BadFolder as error:
        raise BadInput(f"--upload: {error}") from None
    return {**body, "spec": {**cast("Body", body["spec"]), "bundle": bundle}}


def _with_whole_ids(client: Api, body: Body) -> Body:
    """Return the body with the ids of the jobs of which `depends_on` has the beginnings."""
    spec = cast("Body", body["spec"])
    if not isinstance(jobs := spec.get("depends_on"), list):
        return body
    whole = [job_id(client, job) if isinstance(job, str) else job for job in jobs]
    return {**body, "spec": {**spec, "depends_on": whole}}


def _ticket_lines(ticket: Json, ended: dict[str, str]) -> list[str]:
    if ended:
        return [f"{job_id}  {phase}" for job_id, phase in ended.items()]
    return [str(job_id) for job_id in cast("list[str]", ticket["job_ids"])]


def _report_start(ticket: Json) -> None:
    """Print on stderr when a job like this one will start, where one of the tenant waits."""
    start = ticket.get("start")
    if isinstance(start, dict) and holds(start):
        for text in start_lines(start):
            report_line(text)
