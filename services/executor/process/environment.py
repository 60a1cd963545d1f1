"""What a worker's program sees: a built environment, never the executor's own."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

from services.executor.core.orders import Order

SECRET = "secret://"
SECRET_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")
TOKEN = "BERTH_WORKER_TOKEN"
"""Unique per worker and inherited by all it starts: by it what a worker left behind is found."""
PORTS = range(20000, 30000)


class Refusal(Exception):
    """The worker cannot run here; the text is the machine-readable reason."""


def secret_reader(folder: Path | None, tenant: str) -> Callable[[str], str]:
    """Secrets are files, `<folder>/<tenant>/<name>`: a tenant can name only its own."""

    def read(name: str) -> str:
        if folder is None or not SECRET_NAME.fullmatch(name):
            raise Refusal(f"secret_missing: {name[:128]}")
        try:
            return (folder / tenant / name).read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError):
            raise Refusal(f"secret_missing: {name}") from None

    return read


def environment(
    order: Order, home: Path, path: str, token: str, secret: Callable[[str], str]
) -> dict[str, str]:
    """The job's own values first: it cannot replace what Berth tells it."""
    values = {
        name: secret(value.removeprefix(SECRET)) if value.startswith(SECRET) else value
        for name, value in order.spec.env.items()
    }
    if any("\0" in value for value in values.values()):
        raise Refusal("secret_unusable: it holds a NUL")
    return {"PATH": path, "LANG": "C.UTF-8", **values, **_given(order, home, token)}


def _given(order: Order, home: Path, token: str) -> dict[str, str]:
    gpus = ",".join(map(str, order.gpus))
    given = {
        "HOME": str(home),
        "PWD": str(home),
        "TMPDIR": str(home),
        "CUDA_VISIBLE_DEVICES": gpus,
        "BERTH_GPU_MILLI": str(order.gpu_milli),
        "BERTH_JOB_ID": order.job_id,
        "BERTH_ATTEMPT": str(order.attempt),
        "BERTH_NODE_ID": order.node_id,
        "BERTH_RANK": str(order.rank),
        "BERTH_LOCAL_RANK": str(order.local_rank),
        "BERTH_WORLD_SIZE": str(order.world_size),
        "RANK": str(order.rank),
        "LOCAL_RANK": str(order.local_rank),
        "WORLD_SIZE": str(order.world_size),
        "MASTER_ADDR": order.master_address,
        "MASTER_PORT": str(master_port(order.allocation_id)),
        TOKEN: token,
    }
    if order.array_index is not None:
        given["BERTH_ARRAY_INDEX"] = str(order.array_index)
    return given


def master_port(allocation_id: str) -> int:
    """The same for all workers of a gang, another for (nearly) every gang."""
    place = allocation_id.rpartition("/")[0]
    return PORTS[zlib.crc32(place.encode()) % len(PORTS)]
