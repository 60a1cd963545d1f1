"""The window of the queue that the solver decides on, and the jobs that are fixed before it.

The window lies around the first job that would fit alone and that greedy does not start: that is
where there is a choice. Jobs before it start in any case; all but the last of them are fixed where
greedy puts them, so that in a large pool the window is not spent on jobs without competitors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from services.placement.core.pool.job import Job
from services.placement.core.pool.shape import GPU, Shape
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid, nodes_to_avoid
from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.plan import Assignment
from services.placement.core.round.reserve import reserve_freed
from services.placement.core.round.slot_search import SlotSearch
from services.placement.core.round.view import View
from services.placement.core.solver.objective import CLASS_GAP

WINDOW = 64
"""Jobs that fit now, among which the solver chooses."""
BEFORE = WINDOW // 2
"""Most of them that stand before the first that greedy passes over."""
LOOK = 1024
"""Jobs in the queue that are looked at for them."""
RESERVING_MOST = 8
"""Jobs that do not fit and may stop others: as many as greedy serves in one round."""
VICTIMS = 32


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job in the window."""

    job: Job
    shape: Shape
    avoid: Avoid
    position: int
    """Place in the queue."""
    victims: tuple[Job, ...] = ()


@dataclass(slots=True)
class Window:
    """The window; `placed` is greedy's plan by job id, fixed slots are taken on the trial."""

    view: View
    trial: Trial
    placed: Mapping[str, Assignment]
    candidates: list[Candidate] = field(default_factory=list)
    fixed: list[tuple[int, Job, Assignment]] = field(default_factory=list)
    blocked: Shape | None = None
    """Shape of the first job that does not fit."""
    reserving: int = 0
    _before: deque[Candidate] = field(default_factory=deque)
    _slots: SlotSearch = field(init=False)

    def __post_init__(self) -> None:
        self._slots = SlotSearch(self.trial)

    def look(self) -> None:
        """Scan the queue until the window is full."""
        for position, job in enumerate(islice(GREEDY.rank(self.view), LOOK)):
            if len(self.candidates) - self.reserving == WINDOW:
                break
            if job.not_before <= self.view.now and not job.shape.nodes:
                self._consider(position, job)
        self.candidates[:0] = self._before

    def places(self) -> dict[str, int]:
        """Return the place in the window by job id, each class after a gap."""
        places: dict[str, int] = {}
        count = 0
        first: int | None = None
        for candidate in self.candidates:
            gap = 0
            if candidate.job.job_id not in self.view.reservations:
                first = candidate.job.tier if first is None else first
                gap = CLASS_GAP * (candidate.job.tier - first)
            places[candidate.job.job_id] = count + gap
            count += not candidate.victims
        return places

    def _consider(self, position: int, job: Job) -> None:
        shape = GREEDY.allot(self.view, job)
        candidate = Candidate(job, shape, nodes_to_avoid(self.view.board, job, shape), position)
        if job.job_id not in self.placed:
            self._passed_over(candidate)
        elif self.candidates:
            self.candidates.append(candidate)
        else:
            self._before.append(candidate)
            if len(self._before) > BEFORE:
                self._fix(self._before.popleft())

    def _fix(self, candidate: Candidate) -> None:
        assignment = self.placed[candidate.job.job_id]
        self.trial.take(assignment.slots)
        self.fixed.append((candidate.position, candidate.job, assignment))

    def _passed_over(self, candidate: Candidate) -> None:
        job, shape = candidate.job, candidate.shape
        if self._slots.has_room(shape, candidate.avoid):
            self.candidates.append(candidate)
            return
        self.blocked = self.blocked or shape
        if job.job_id in self.view.reservations:
            reserve_freed(self.view, self.trial, job, shape)
        elif self._may_reserve(job, shape):
            victims = tuple(filter(is_whole, self.view.victims.of(job)[:VICTIMS]))
            if victims:
                self.reserving += 1
                self.candidates.append(
                    Candidate(job, shape, candidate.avoid, candidate.position, victims)
                )

    def _may_reserve(self, job: Job, shape: Shape) -> bool:
        whole = shape.gpus and not shape.is_share
        return bool(whole and self.reserving < RESERVING_MOST and self.view.victims.any_for(job))


def is_whole(job: Job) -> bool:
    """Return whether it holds whole GPUs only: no other victim gives back what a reservation
    needs.
    """
    return all(allocation.slot.milli == GPU for allocation in job.allocations.values())
