"""Figures of a pool for dashboards and alerts, read from placement's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from services.placement.core.pool.job import Phase
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import GPU
from services.placement.core.pool.state import Pool
from shared.contracts.base import Millis
from shared.telemetry.figures import Figure

PHASES: tuple[Phase, ...] = get_args(Phase)


def figures(pool: Pool, now: Millis) -> Iterator[Figure]:
    """Yield the figures of one lane; none of a lane without a pool."""
    if pool.settings is None:
        return
    label = (pool.name,)
    yield from jobs(pool, label, now)
    yield from gpus(pool, label)
    yield from nodes(pool, label)


def jobs(pool: Pool, label: tuple[str], now: Millis) -> Iterator[Figure]:
    phases = Counter(job.phase for job in pool.jobs.values())
    for phase in PHASES:
        yield Figure("berth_jobs", phases[phase], (*label, phase))
    waiting = pool.waiting.values()
    oldest = min((job.since for job in waiting), default=now)
    waiting_gpus = sum(job.shape.min_workers * job.shape.worker_milli for job in waiting) / GPU
    yield Figure("berth_queue_gpus", waiting_gpus, label)
    yield Figure("berth_queue_oldest_wait_seconds", max(0, now - oldest) / 1000, label)
    since = pool.first_change if pool.changed and pool.waiting else now
    yield Figure("berth_undecided_seconds", max(0, now - since) / 1000, label)


def gpus(pool: Pool, label: tuple[str]) -> Iterator[Figure]:
    """Yield GPUs that are present, taken, and free on partly used nodes."""
    present_gpus: Counter[str] = Counter()
    held: Counter[str] = Counter()
    free_milli = partly_milli = 0
    for node in present(pool):
        kind, free = node.kind.gpu_type, sum(node.free)
        present_gpus[kind] += node.kind.gpus
        held[kind] += node.kind.gpus * GPU - free
        free_milli += free
        partly_milli += free if free < node.kind.gpus * GPU else 0
    for kind, count in sorted(present_gpus.items()):
        yield Figure("berth_gpus", count, (*label, kind))
        yield Figure("berth_gpus_held", held[kind] / GPU, (*label, kind))
    total = sum(present_gpus.values())
    used = sum(held.values()) / GPU
    yield Figure("berth_gpu_utilization_ratio", used / total if total else 0.0, label)
    apart = partly_milli / free_milli if free_milli else 0.0
    yield Figure("berth_fragmentation_ratio", apart, label)


def nodes(pool: Pool, label: tuple[str]) -> Iterator[Figure]:
    states = Counter(state_of(pool, node) for node in present(pool))
    for state in ("alive", "cordoned", "silent"):
        yield Figure("berth_nodes", states[state], (*label, state))
    yield Figure("berth_nodes", len(pool.lost), (*label, "lost"))
    yield Figure("berth_nodes", len(pool.held_back), (*label, "held_back"))
    yield Figure("berth_nodes_suspected", len(pool.board.slow), label)
    yield Figure("berth_workers_stuck", len(pool.stuck), label)


def state_of(pool: Pool, node: Node) -> str:
    """Return the state of a node that is not lost; a silent one is suspected to be."""
    if node.silence is not None:
        return "silent"
    return "cordoned" if node.node_id in pool.cordons else "alive"


def present(pool: Pool) -> Iterator[Node]:
    return (node for node in pool.board.nodes.values() if node.lost_at is None)
