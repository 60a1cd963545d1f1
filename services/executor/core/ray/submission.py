"""The jobs by which Ray runs a gang, and what the wrapper of each worker reads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from services.executor.core.agents.state import AgentWorker
from services.executor.core.engines.environment import gang_variables, rank_variables
from services.executor.core.engines.gangs import EngineGang
from services.executor.core.engines.noted import BEGUN
from services.executor.core.ray.names import (
    GPUS,
    IDENTITY,
    NODE,
    RANK,
    WORLD,
    ref_of,
    submission_id,
)

BYTES_PER_GIB = 2**30
ON_NODE = 0.001
"""Part of the resource `node:ADDRESS`, which every node of Ray has once, that pins a job."""
WRAPPER = "worker.py"
LONGEST_S = 3600.0
"""Most that `stop_after_s` may be."""


class RayOptions(NamedTuple):
    """Settings of an operator."""

    address: str
    """URL of the dashboard, as the nodes reach it too."""
    stop_after_s: float
    """Time without an answer of Ray after which a worker is ended by its wrapper."""


def job_requests(
    gang: EngineGang, folder: str, addresses: Mapping[str, str]
) -> dict[int, dict[str, Any]]:
    """Return what the API of jobs takes, by rank; `addresses` are those of nodes by name.

    Raises KeyError for a node without one.
    """
    return {
        worker.launch.rank: _request(gang, worker, folder, addresses[worker.node_id])
        for worker in gang.workers
    }


def _request(gang: EngineGang, worker: AgentWorker, folder: str, address: str) -> dict[str, Any]:
    launch = worker.launch
    return {
        "submission_id": submission_id(ref_of(gang.identity), launch.rank),
        # Ray writes the command to the worker's log: it has no variable of the job.
        "entrypoint": f"exec python3 {shlex.quote(f'{folder}/{WRAPPER}')} {launch.rank}",
        "entrypoint_num_cpus": launch.cpus,
        "entrypoint_num_gpus": len(launch.gpus),
        "entrypoint_memory": round(launch.mem_gib * BYTES_PER_GIB),
        "entrypoint_resources": {f"node:{address}": ON_NODE},
        "metadata": {
            IDENTITY: gang.identity,
            RANK: str(launch.rank),
            WORLD: str(launch.world_size),
            NODE: worker.node_id,
            GPUS: str(len(launch.gpus)),
        },
    }


def wrapper_inputs(
    gang: EngineGang, options: RayOptions, addresses: Mapping[str, str]
) -> dict[int, dict[str, Any]]:
    """Return what the wrapper of each worker reads, by rank.

    The workers meet where Ray has the node of rank 0 now: it may have joined the pool elsewhere.
    """
    ref = ref_of(gang.identity)
    shared = gang_variables(gang.launch) | {"MASTER_ADDR": addresses[gang.nodes[0]]}
    return {
        worker.launch.rank: {
            "begins": BEGUN + ref,
            "command": list(worker.launch.command),
            "environment": {**shared, **rank_variables(worker.launch, worker.node_id)},
            "workdir": worker.launch.workdir,
            "walltime_s": worker.launch.walltime_s,
            "grace_s": worker.launch.grace_s,
            "stop_after_s": options.stop_after_s,
            "job": f"{options.address}/api/jobs/{submission_id(ref, worker.launch.rank)}",
        }
        for worker in gang.workers
    }
