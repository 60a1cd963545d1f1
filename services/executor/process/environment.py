"""The environment of a worker's program: built anew, never the executor's own."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

from services.executor.core.effects import WorkerSpec

SECRET = "secret://"
SECRET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
TOKEN = "BERTH_WORKER_TOKEN"
"""Unique per worker and inherited by all processes it starts, so that they can be identified."""
PORTS = range(20000, 30000)


class LaunchRefused(Exception):
    """The worker cannot run here; the text is the machine-readable reason."""


def secret_reader(folder: Path | None, tenant: str) -> Callable[[str], str]:
    """Return a reader of `<folder>/<tenant>/<name>`: a tenant can name only its own secrets."""

    def read(name: str) -> str:
        if folder is None or not SECRET_NAME.fullmatch(name):
            raise LaunchRefused(f"secret_missing: {name[:128]}")
        try:
            return (folder / tenant / name).read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError):
            raise LaunchRefused(f"secret_missing: {name}") from None

    return read


def environment(
    spec: WorkerSpec, home: Path, path: str, token: str, secret: Callable[[str], str]
) -> dict[str, str]:
    """Return the variables; a job cannot replace those that Berth sets."""
    values = {
        name: secret(value.removeprefix(SECRET)) if value.startswith(SECRET) else value
        for name, value in spec.job_spec.env.items()
    }
    if any("\0" in value for value in values.values()):
        raise LaunchRefused("secret_unusable: it holds a NUL")
    return {"PATH": path, "LANG": "C.UTF-8", **values, **_own_variables(spec, home, token)}


def _own_variables(spec: WorkerSpec, home: Path, token: str) -> dict[str, str]:
    gpus = ",".join(map(str, spec.gpus))
    variables = {
        "HOME": str(home),
        "PWD": str(home),
        "TMPDIR": str(home),
        "CUDA_VISIBLE_DEVICES": gpus,
        "BERTH_GPU_MILLI": str(spec.gpu_milli),
        "BERTH_JOB_ID": spec.job_id,
        "BERTH_ATTEMPT": str(spec.attempt),
        "BERTH_NODE_ID": spec.node_id,
        "BERTH_RANK": str(spec.rank),
        "BERTH_LOCAL_RANK": str(spec.local_rank),
        "BERTH_WORLD_SIZE": str(spec.world_size),
        "RANK": str(spec.rank),
        "LOCAL_RANK": str(spec.local_rank),
        "WORLD_SIZE": str(spec.world_size),
        "MASTER_ADDR": spec.master_address,
        "MASTER_PORT": str(master_port(spec.allocation_id)),
        TOKEN: token,
    }
    if spec.array_index is not None:
        variables["BERTH_ARRAY_INDEX"] = str(spec.array_index)
    return variables


def master_port(allocation_id: str) -> int:
    """Return the port: the same for all workers of a gang, another for (nearly) every gang."""
    place = allocation_id.rpartition("/")[0]
    return PORTS[zlib.crc32(place.encode()) % len(PORTS)]
