"""Views of small clusters for tests of schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.performance.rates import RateTable
from shared.schedulers.view import (
    CandidateJob,
    ClusterView,
    Estimates,
    MoveLimits,
    Placement,
    TypedNode,
)


def nodes_of(**types: int) -> tuple[TypedNode, ...]:
    """Return one node per type with so many GPUs."""
    return tuple(TypedNode(f"n-{name}", name, gpus) for name, gpus in types.items())


def rates(by_type: Mapping[str, float], gpus: int = 1, left: float | None = None) -> Estimates:
    return Estimates(
        "oracle", left, RateTable({(name, gpus): own for name, own in by_type.items()})
    )


def job(
    job_id: str,
    gpus: int = 1,
    submit_s: float = 0.0,
    estimates: Estimates | None = None,
    **fields: Any,
) -> CandidateJob:
    bounds = {"min_gpus": gpus, "max_gpus": gpus, **fields}
    return CandidateJob(job_id, submit_s, gpus, estimates=estimates or Estimates(), **bounds)


def view(
    jobs: tuple[CandidateJob, ...] | list[CandidateJob],
    nodes: tuple[TypedNode, ...],
    now_s: float = 0.0,
    number: int = 0,
    moves: int = 1_000_000,
) -> ClusterView:
    return ClusterView(now_s, number, 7, 360.0, tuple(jobs), nodes, MoveLimits(moves))


def on(node: str, gpus: int = 1) -> Placement:
    return ((node, gpus),)
