"""Work in Ray that Berth did not start, by what Ray's state API lists: actors, tasks, groups."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Set
from typing import Any

from services.executor.core.engines.contract import EngineJob, EnginePhase
from services.executor.core.ray.names import SUPERVISOR

Row = Mapping[str, Any]


def node_names(rows: Collection[Row]) -> dict[str, str]:
    """Return the names of living nodes by Ray's own ids."""
    return {
        row["node_id"]: str(row.get("node_name") or row["node_ip"])
        for row in rows
        if row["state"] == "ALIVE"
    }


def foreign_jobs(
    actors: Collection[Row],
    tasks: Collection[Row],
    groups: Collection[Row],
    names: Mapping[str, str],
    own: Set[str],
) -> tuple[EngineJob, ...]:
    """Return what holds GPUs; `own` are the ids of Berth's jobs, `names` those of the nodes.

    What runs in a placement group holds GPUs of the group, which counts alone.
    """
    work = (*_actors(actors, own), *_tasks(tasks), *_groups(groups))
    jobs = []
    for ref, owner, by_node in work:
        counts = {names[node]: math.ceil(n) for node, n in by_node.items() if n and node in names}
        if counts:
            jobs.append(
                EngineJob(
                    ref=ref,
                    identity="",
                    phase=EnginePhase.RUNNING,
                    owner=owner,
                    nodes=tuple(counts),
                    gpu_counts=counts,
                )
            )
    return tuple(sorted(jobs, key=lambda job: job.ref))


Held = tuple[str, str, dict[str, float]]
"""An id, words for people, and GPUs by Ray's id of the node."""


def _actors(rows: Collection[Row], own: Set[str]) -> Iterator[Held]:
    for row in rows:
        name = str(row.get("name") or "")
        job = name.removeprefix(SUPERVISOR) if name.startswith(SUPERVISOR) else ""
        if row["state"] != "ALIVE" or row.get("placement_group_id") or job in own:
            continue
        words = f"actor {name or row.get('class_name')} of job {row.get('job_id')}"
        owner = f"Ray job {job}" if job else f"Ray {words}"
        yield row["actor_id"], owner, {str(row.get("node_id")): _gpus(row)}


def _tasks(rows: Collection[Row]) -> Iterator[Held]:
    for row in rows:
        if row.get("type") != "NORMAL_TASK" or row.get("placement_group_id"):
            continue
        if row["state"] == "RUNNING":
            owner = f"Ray task {row.get('name')} of job {row.get('job_id')}"
            yield row["task_id"], owner, {str(row.get("node_id")): _gpus(row)}


def _groups(rows: Collection[Row]) -> Iterator[Held]:
    for row in rows:
        if row["state"] != "CREATED":
            continue
        held: dict[str, float] = {}
        for bundle in row.get("bundles") or ():
            node, gpus = str(bundle.get("node_id")), bundle.get("unit_resources", {}).get("GPU", 0)
            held[node] = held.get(node, 0.0) + float(gpus)
        name = row.get("name") or row["placement_group_id"]
        yield row["placement_group_id"], f"Ray placement group {name}", held


def _gpus(row: Row) -> float:
    return float((row.get("required_resources") or {}).get("GPU", 0))
