"""A scheduler that places the jobs of a test on the nodes that the test names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar
from unittest.mock import patch

from services.placement.core.scheduled import request
from services.placement.core.scheduled.allot import early_ms
from shared.contracts.admission import JobAdmitted
from shared.contracts.placement import JobPlaced
from shared.schedulers.hooks import Allotment, Allotments, Decides, Hooks, Memory, Placements
from shared.schedulers.view import ClusterView, Placement, gpus_of
from tests.services.placement.core.lane import Lane, lane, only


class Chooses(Hooks):
    """Places each job of `chosen` that is in the view there, and no other one."""

    name: ClassVar[str] = "chooses"
    source: ClassVar[str] = "a test"
    decides: ClassVar[tuple[Decides, ...]] = ("type", "gpus", "nodes")

    def __init__(self, chosen: dict[str, Placement]) -> None:
        self.chosen = chosen

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return {
            job_id: Allotment(view.type_of(own) or "", gpus_of(own))
            for job_id, own in self.chosen.items()
            if job_id in view.job_by_id
        }

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return {job_id: self.chosen[job_id] for job_id in allotments}


@contextmanager
def choosing(**chosen: Placement) -> Iterator[dict[str, Placement]]:
    """Let pools with the scheduler `chooses` have these placements, which may be changed."""
    with patch.object(request, "scheduler_of", lambda name: Chooses(chosen)):
        yield chosen


def two_nodes(**settings: object) -> Lane:
    """A pool with four GPUs on each of two nodes."""
    return lane("a", "b", gpus=4, scheduler="chooses", **{"min_residency_s": 0, **settings})


def workers_on(pool: Lane, job_id: str) -> dict[str, int]:
    """Return the workers of a job by node."""
    names = [own.slot.node_id for own in pool.job(job_id).allocations.values()]
    return {name: names.count(name) for name in sorted(names)}


def submit_later(pool: Lane, admitted: JobAdmitted) -> JobPlaced:
    """Return the start of a job that came after a proposal, by the next one."""
    events = pool.submit(admitted)
    pool.now = max(pool.now, early_ms(pool.state))
    events += pool.wake()
    (placed,) = only(JobPlaced, events)
    assert placed.job_id == admitted.job_id
    return placed
