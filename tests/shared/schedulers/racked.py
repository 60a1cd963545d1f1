"""Views of clusters with racks, and jobs whose steps the links slow down."""

from __future__ import annotations

from typing import Any

from shared.performance.links import GangSteps, Link, TieredLinks
from shared.schedulers.view import CandidateJob, Estimates, TypedNode
from tests.shared.schedulers.views import job

LINKS = TieredLinks(Link(0.0, 1e9), Link(0.0, 1e6), Link(0.0, 1e3))
SENSITIVE = GangSteps(1.0, 1e4, LINKS)
"""Two GPUs take 1 s a step in a node, 1.01 in a rack, 11 over the spine."""
TO_RACKS = GangSteps(1.0, 1e6, LINKS)
"""Two GPUs take 1.001 s a step in a node, 2 in a rack."""
INSENSITIVE = GangSteps(1.0, 1.0, LINKS)


def racks_of(*racks: tuple[int, ...]) -> tuple[TypedNode, ...]:
    """Return nodes with so many GPUs by rack: n11, n12, ... in the first one."""
    return tuple(
        TypedNode(f"n{rack}{number}", "v", gpus, f"r{rack}")
        for rack, nodes in enumerate(racks, 1)
        for number, gpus in enumerate(nodes, 1)
    )


def gang(
    job_id: str, gpus: int, steps: GangSteps | None = SENSITIVE, **fields: Any
) -> CandidateJob:
    return job(job_id, gpus, estimates=Estimates("oracle", steps=steps), **fields)
