"""The environment of a worker's program.

A worker sees its own GPUs alone, numbered from 0, so that it is presented as a node of its own to
the libraries of distributed training: `NODE_RANK * LOCAL_WORLD_SIZE + LOCAL_RANK == RANK` holds
for each worker. `BERTH_NODE_RANK` and `BERTH_LOCAL_RANK` say where it really is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from berth_agent.messages import Launch
from berth_agent.token_names import TOKEN

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RESERVED = "BERTH_"
DEVICES = "CUDA_VISIBLE_DEVICES"


def own_variables(
    launch: Launch,
    *,
    node_id: str,
    token: str,
    telemetry: str,
    devices: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return what Berth sets, without `MASTER_PORT`, which comes with the start.

    A prolog and an epilog, which may run as root, get these of a worker and no others. `devices`
    are the names of its GPUs where CUDA does not know them by their numbers.
    """
    return {
        **_of_gang(launch, tuple(map(str, launch.gpus)) if devices is None else devices),
        **_of_berth(launch, node_id),
        "BERTH_TELEMETRY": telemetry,
        "BERTH_TELEMETRY_TOKEN": token,
        TOKEN: token,
    }


def environment(
    login: Mapping[str, str], job: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a worker: the job's replace those of the login, and not Berth's.

    Names that begin with `BERTH_` are Berth's, also those that this worker does not get.
    """
    chosen = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8", **login, **job}
    kept = {name: value for name, value in chosen.items() if not name.startswith(RESERVED)}
    return {**kept, **own}


def master_port_variables(port: int | None) -> dict[str, str]:
    """Return the variables that come with the order to start."""
    return {} if port is None else {"MASTER_PORT": str(port)}


def _of_gang(launch: Launch, devices: Sequence[str]) -> dict[str, str]:
    """Variables that torchrun would set, and the GPUs."""
    return {
        DEVICES: ",".join(devices),
        # Without it CUDA numbers the fastest GPU first, and the indices mean other GPUs.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "RANK": str(launch.rank),
        "WORLD_SIZE": str(launch.world_size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": str(launch.rank),
        "GROUP_RANK": str(launch.rank),
        "GROUP_WORLD_SIZE": str(launch.world_size),
        "MASTER_ADDR": launch.master_addr,
    }


def _of_berth(launch: Launch, node_id: str) -> dict[str, str]:
    variables = {
        "BERTH_JOB_ID": launch.job_id,
        "BERTH_FIRST_JOB_ID": launch.first_job_id or launch.job_id,
        "BERTH_TENANT": launch.tenant,
        "BERTH_ATTEMPT": str(launch.attempt),
        "BERTH_NODE_ID": node_id,
        "BERTH_NODE_RANK": str(launch.node_rank),
        "BERTH_NODES": str(launch.nodes),
        "BERTH_RANK": str(launch.rank),
        "BERTH_WORLD_SIZE": str(launch.world_size),
        "BERTH_LOCAL_RANK": str(launch.local_rank),
        "BERTH_LOCAL_WORLD_SIZE": str(launch.local_world_size),
        "BERTH_GPU_MILLI": str(launch.gpu_milli),
    }
    if launch.array_index is not None:
        variables["BERTH_ARRAY_INDEX"] = str(launch.array_index)
    return variables


def parse_environment(text: str) -> dict[str, str]:
    """Return the variables of an `/etc/environment`: `NAME=value`, perhaps quoted or exported."""
    variables = {}
    for line in text.splitlines():
        name, separator, value = line.strip().removeprefix("export ").partition("=")
        if separator and name.isidentifier():
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            variables[name] = value[1:-1] if quoted else value
    return variables
