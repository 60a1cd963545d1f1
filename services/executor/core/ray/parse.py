"""The answers of Ray's dashboard in the words of the contract: its nodes, and Berth's gangs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Set
from typing import Any

from services.executor.core.engines.contract import (
    ANY_GPU_TYPE,
    CPU_TYPE,
    NO_FAILURE,
    NO_PROGRESS,
    EngineJob,
    EngineNode,
    EnginePhase,
    GangProgress,
)
from services.executor.core.engines.gangs import Identity
from services.executor.core.ray.names import (
    GPUS,
    IDENTITY,
    NODE,
    RANK,
    WORLD,
    ref_of,
    submission_id,
)
from shared.contracts.base import NAME
from shared.contracts.failures import Failure

BYTES_PER_GIB = 2**30
ACCELERATOR = "accelerator_type:"
ALIVE = "ALIVE"
NUMBERS = (RANK, WORLD, GPUS)
LOST = frozenset(
    {
        "JOB_SUPERVISOR_ACTOR_DIED",
        "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
        "JOB_SUPERVISOR_ACTOR_START_FAILURE",
        "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
    }
)
"""Errors of a job whose processes Ray has lost sight of: they may run on for a while."""
OVER = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
NUMBER = re.compile(r"[0-9]{1,5}")
WORDS = 200

Row = Mapping[str, Any]
Progress = Mapping[str, GangProgress]


def nodes_of(rows: Collection[Row]) -> dict[str, EngineNode]:
    """Return the nodes with cores or GPUs by their names in Ray, each as it last joined.

    Of two nodes of one name a living one counts.
    """
    nodes = {}
    for row in sorted(rows, key=_joined):
        name, resources = str(row.get("node_name") or row["node_ip"]), row["resources_total"]
        gpus, cpus = int(resources.get("GPU", 0)), float(resources.get("CPU", 0))
        if not NAME.fullmatch(name) or not (gpus or cpus):
            continue
        nodes[name] = EngineNode(
            node_id=name,
            gpus=gpus,
            gpu_type=_gpu_type(resources) if gpus else CPU_TYPE,
            cpus=cpus,
            mem_gib=float(resources.get("memory", 0)) / BYTES_PER_GIB,
            address=str(row["node_ip"]),
            boot_id=str(row["node_id"]),
            responds=row["state"] == ALIVE,
        )
    return nodes


def _joined(row: Row) -> tuple[bool, int]:
    return row["state"] == ALIVE, int(row.get("start_time_ms") or 0)


def _gpu_type(resources: Row) -> str:
    kinds = (name.removeprefix(ACCELERATOR) for name in resources if name.startswith(ACCELERATOR))
    kind = next(kinds, ANY_GPU_TYPE).lower()
    return kind if NAME.fullmatch(kind) else ANY_GPU_TYPE


def own_rows(rows: Collection[Row]) -> dict[str, list[Row]]:
    """Return the jobs that Berth submitted, by the identity of their gang, in order of rank.

    Whoever reaches Ray may write any metadata: it counts where the id of the job follows from it.
    """
    gangs: dict[str, list[Row]] = {}
    for row in rows:
        if _is_own(row):
            gangs.setdefault(row["metadata"][IDENTITY], []).append(row)
    for ranks in gangs.values():
        ranks.sort(key=lambda row: int(row["metadata"][RANK]))
    return gangs


def _is_own(row: Row) -> bool:
    metadata = row.get("metadata") or {}
    identity = Identity.parse(str(metadata.get(IDENTITY, "")))
    if identity is None or not all(NUMBER.fullmatch(str(metadata.get(n))) for n in NUMBERS):
        return False
    name = submission_id(ref_of(identity.text), int(metadata[RANK]))
    return bool(row.get("submission_id") == name and metadata.get(NODE))


def living_gangs(gangs: Mapping[str, list[Row]]) -> set[str]:
    """Return the identities of gangs of which a job has not ended."""
    return {name for name, rows in gangs.items() if not all(row["status"] in OVER for row in rows)}


def unproven(gangs: Mapping[str, list[Row]], progress: Progress) -> set[str]:
    """Return the identities of gangs of which a program may run on though Ray shows no job of it.

    A worker that noted its end has no process left. The others end by their own wrappers.
    """
    lost = set()
    for identity, noted in progress.items():
        rows = gangs.get(identity, [])
        if noted.is_begun and (not rows or _lost_ranks(rows) - noted.ends.keys()):
            lost.add(identity)
    return lost


def _lost_ranks(rows: list[Row]) -> set[int]:
    """Return the ranks of which Ray shows no job, or one that it has lost sight of."""
    known = {int(row["metadata"][RANK]) for row in rows if row.get("error_type") not in LOST}
    return set(range(int(rows[0]["metadata"][WORLD]))) - known


def jobs_of(
    gangs: Mapping[str, list[Row]], progress: Progress, held: Set[str]
) -> tuple[EngineJob, ...]:
    """Return a job per gang; `held` are the unproven whose wrappers may not have ended them yet."""
    known = [
        _job(identity, rows, progress.get(identity, NO_PROGRESS), is_held=identity in held)
        for identity, rows in gangs.items()
    ]
    missing = (name for name, noted in progress.items() if noted.is_begun and name not in gangs)
    return (*known, *(_forgotten(identity, is_held=identity in held) for identity in missing))


def _forgotten(identity: str, *, is_held: bool) -> EngineJob:
    owner = f"Ray jobs {ref_of(identity)}.*"
    return EngineJob(
        ref=ref_of(identity),
        identity=identity,
        phase=EnginePhase.ENDING if is_held else EnginePhase.ENDED,
        owner=owner,
        failure=Failure(reason="step_lost", detail=f"Ray does not know it any more: {owner}"),
    )


def _job(identity: str, rows: list[Row], noted: GangProgress, *, is_held: bool) -> EngineJob:
    # A job that waits cannot be withdrawn from Ray: what is forbidden ends when it gets its turn.
    waiting = [] if noted.is_forbidden else [row for row in rows if row["status"] == "PENDING"]
    living = [row for row in rows if row["status"] == "RUNNING"]
    failed = [row for row in rows if row["status"] in ("FAILED", "STOPPED")]
    holding = living or waiting or (rows if is_held else [])
    counts: dict[str, int] = {}
    for row in living:
        node = row["metadata"][NODE]
        counts[node] = counts.get(node, 0) + int(row["metadata"][GPUS])
    ref = ref_of(identity)
    owner = f"Ray jobs {ref}.*"
    return EngineJob(
        ref=ref,
        identity=identity,
        phase=_phase(living, waiting, is_held=is_held),
        owner=owner,
        nodes=tuple(dict.fromkeys(row["metadata"][NODE] for row in holding)),
        gpu_counts=counts,
        waits_for=str(waiting[0].get("message") or "")[:WORDS] if waiting else "",
        failure=_failure(failed, owner, noted),
        exit_code=_exit_code(failed),
        is_partial=not failed and len(rows) < int(rows[0]["metadata"][WORLD]),
        is_kept=all(row["status"] in OVER for row in rows),
        has_failed=bool(failed) or any(end.exit_code for end in noted.ends.values()),
    )


def _phase(living: list[Row], waiting: list[Row], *, is_held: bool) -> EnginePhase:
    if waiting:
        return EnginePhase.PENDING
    if living:
        return EnginePhase.RUNNING
    return EnginePhase.ENDING if is_held else EnginePhase.ENDED


def _failure(failed: list[Row], owner: str, noted: GangProgress) -> Failure:
    """Return why a gang ended that its program did not end, nothing for other gangs."""
    for row in failed:
        words = f"{owner}: {row.get('message') or ''}"[:1024]
        if row["status"] == "STOPPED":
            return Failure(reason="engine_cancelled", detail=f"it was stopped in Ray: {owner}")
        if row.get("error_type") in LOST:
            return Failure(reason="step_lost", detail=words)
        if not noted.is_begun:
            return Failure(reason="engine_refused", detail=words)
    return NO_FAILURE


def _exit_code(failed: list[Row]) -> int:
    codes = (int(row.get("driver_exit_code") or 0) for row in failed)
    return next((128 - code if code < 0 else code for code in codes if code), 0)
