"""The environment of a gang's programs in an engine: what agents give, by the same names.

A worker sees its own GPUs alone, numbered as the engine gave them, so that it is a node of its own
to the libraries of distributed training.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.contracts.agents import Launch

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RESERVED = "BERTH_"


OF_A_NODE = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
"""Variables of a program that runs in no image, which has its own."""


def gang_variables(launch: Launch, defaults: Mapping[str, str] = OF_A_NODE) -> dict[str, str]:
    """Return the variables that all workers of the gang share: the job's, then Berth's."""
    chosen = {**defaults, **launch.env}
    kept = {name: value for name, value in chosen.items() if not name.startswith(RESERVED)}
    own = {
        "WORLD_SIZE": str(launch.world_size),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "GROUP_WORLD_SIZE": str(launch.world_size),
        "MASTER_ADDR": launch.master_addr,
        # Without it CUDA numbers the fastest GPU first, and the indices mean other GPUs.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "BERTH_JOB_ID": launch.job_id,
        "BERTH_FIRST_JOB_ID": launch.first_job_id or launch.job_id,
        "BERTH_TENANT": launch.tenant,
        "BERTH_ATTEMPT": str(launch.attempt),
        "BERTH_NODES": str(launch.nodes),
        "BERTH_WORLD_SIZE": str(launch.world_size),
        "BERTH_GPU_MILLI": str(launch.gpu_milli),
    }
    if launch.array_index is not None:
        own["BERTH_ARRAY_INDEX"] = str(launch.array_index)
    return {**kept, **own}


def rank_variables(launch: Launch, node_id: str) -> dict[str, str]:
    """Return the variables in which a worker differs from the others, its GPUs aside."""
    return {
        "RANK": str(launch.rank),
        "NODE_RANK": str(launch.rank),
        "GROUP_RANK": str(launch.rank),
        "BERTH_NODE_ID": node_id,
        "BERTH_NODE_RANK": str(launch.node_rank),
        "BERTH_RANK": str(launch.rank),
        "BERTH_LOCAL_RANK": str(launch.local_rank),
        "BERTH_LOCAL_WORLD_SIZE": str(launch.local_world_size),
    }
