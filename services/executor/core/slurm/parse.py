"""The answers of `sinfo --json` and `squeue --json` in the words of the contract.

Releases differ: 22.05 writes a number or a state as such, later ones as an object or a list. What
is missing counts as zero or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from services.executor.core.engines.contract import ANY_GPU_TYPE, CPU_TYPE, EngineJob, EngineNode
from services.executor.core.slurm.hostlist import expand_hosts, expand_indices
from services.executor.core.slurm.states import (
    exit_code_of,
    failure_of,
    is_refused,
    lost_a_node,
    phase_of,
)
from shared.contracts.base import NAME

MIB_PER_GIB = 1024
GPU = re.compile(r"(?:^|,)gpu(?::([^:,(]+))?:(\d+)")
HELD = re.compile(r"gpu(?::[^:,(]+)?:\d+\(IDX:([^)]*)\)")
SILENT_STATES = frozenset({"DOWN", "NOT_RESPONDING", "UNKNOWN", "POWERED_DOWN", "POWERING_UP"})
DRAINED_STATES = frozenset(
    {"DRAIN", "FAIL", "MAINTENANCE", "RESERVED", "POWERING_DOWN", "POWER_DOWN", "REBOOT_ISSUED"}
)
UNSET = ("", "N/A", "None", "(null)")

Row = Mapping[str, Any]


def nodes_of(answer: Row, partition: str) -> dict[str, EngineNode]:
    """Return the nodes of a partition, of all if none is named; others are not served."""
    rows: Iterable[Row] = answer.get("nodes") or answer.get("sinfo") or ()
    nodes = (
        _node(row)
        for row in rows
        if not partition or partition in _list(row.get("partitions"))
        if NAME.fullmatch(str(row.get("name", "")))
    )
    return {node.node_id: node for node in nodes}


def _node(row: Row) -> EngineNode:
    states = states_of(row.get("state")) | states_of(row.get("state_flags"))
    gpu_type, gpus = _gpus(str(row.get("gres", "")))
    why = str(row.get("reason", ""))
    drained = sorted(states & DRAINED_STATES)
    words = f"Slurm: {','.join(drained)}" + (f", {why}" if why not in UNSET else "")
    return EngineNode(
        node_id=str(row["name"]),
        gpus=gpus,
        gpu_type=gpu_type,
        cpus=float(number(row.get("cpus"))),
        mem_gib=number(row.get("real_memory")) / MIB_PER_GIB,
        address=str(row.get("address") or row.get("hostname") or row["name"]),
        boot_id=str(number(row.get("boot_time"))),
        responds=not states & SILENT_STATES,
        drained=words if drained else "",
    )


def _gpus(gres: str) -> tuple[str, int]:
    """Return type and number: the type of the most GPUs where a node has several."""
    kinds = [(kind or ANY_GPU_TYPE, int(count)) for kind, count in GPU.findall(gres)]
    if not kinds:
        return CPU_TYPE, 0
    kind = max(kinds, key=lambda pair: pair[1])[0].lower()
    return (kind if NAME.fullmatch(kind) else ANY_GPU_TYPE), sum(count for _, count in kinds)


def jobs_of(answer: Row, users: Set[str], folders: Mapping[str, str]) -> tuple[EngineJob, ...]:
    """Return all jobs, the oldest first; `users` are those as which this executor submits, and
    `folders` are the identities of the gangs that are not released, by the paths of their folders.

    Anyone can write a comment: the job of another user is foreign work, whatever its comment says.
    The user of a job can change its comment, but not the folder in which it runs.
    """
    rows: Iterable[Row] = answer.get("jobs", ())
    by_age = sorted(rows, key=lambda row: number(row.get("job_id")))
    return tuple(_job(row, users, folders) for row in by_age)


def _job(row: Row, users: Set[str], folders: Mapping[str, str]) -> EngineJob:
    states = states_of(row.get("job_state"))
    nodes = expand_hosts(str(row.get("nodes") or ""))
    waits_for = str(row.get("state_reason") or "")
    ref = str(number(row.get("job_id")))
    user = str(row.get("user_name") or row.get("user_id") or "")
    owner = f"Slurm job {ref} of {user or 'an unknown user'}"
    restarts = number(row.get("restart_cnt"))
    folder = str(row.get("current_working_directory") or "")
    identity = folders.get(folder) or str(row.get("comment") or "")
    return EngineJob(
        ref=ref,
        identity=identity if user in users else "",
        phase=phase_of(states),
        owner=owner,
        user=user,
        nodes=nodes,
        gpus=_held(nodes, row.get("gres_detail")),
        waits_for="" if waits_for in UNSET else waits_for,
        is_refused=is_refused(waits_for),
        restarts=restarts,
        failure=failure_of(states, owner, waits_for),
        exit_code=exit_code_of(row.get("exit_code")),
        lost_node=lost_a_node(states),
    )


def _held(nodes: tuple[str, ...], details: object) -> dict[str, tuple[int, ...]]:
    """Return the indices of GPUs by node; Slurm lists the details in the order of the nodes."""
    held = {}
    for node, detail in zip(nodes, _list(details), strict=False):
        indices = [index for text in HELD.findall(str(detail)) for index in expand_indices(text)]
        if indices:
            held[node] = tuple(sorted(indices))
    return held


def states_of(value: object) -> frozenset[str]:
    """Return names of states: `IDLE+DRAIN`, a list of them, or one."""
    texts = value if isinstance(value, list) else [value]
    parts = (part for text in texts if text for part in re.split(r"[+,\s]+", str(text).upper()))
    return frozenset(part.rstrip("*~#!%$@^-") for part in parts if part)


def number(value: object) -> int:
    """Return a number, 0 for one that is not set or not there."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) else 0
    return int(value) if isinstance(value, (int, float)) else 0


def _list(value: object) -> list[Any]:
    if isinstance(value, str):
        return [item for item in value.split(",") if item]
    return list(value) if isinstance(value, (list, tuple)) else []
