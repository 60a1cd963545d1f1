"""EASY backfill: no job behind the head of the queue may delay the head's expected start.

Rules: Mu'alem and Feitelson 2001, with a reservation of nodes instead of a count of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.pool.node import Node
from services.placement.core.pool.shape import Shape, Slot
from services.placement.core.pool.trial import Trial
from services.placement.core.round.fit import Avoid, place
from services.placement.core.round.plan import Assignment
from services.placement.core.round.view import View
from shared.contracts.job_names import Program


class QueueHead(NamedTuple):
    """The first job that does not fit, with the time and the nodes of its expected start."""

    job_id: str
    at: int | None
    """ms of the start; None: unknown, so no job can delay it."""
    nodes: frozenset[str] = frozenset()
    longest_ms: Mapping[Program, int] | None = None
    """Longest run so far, wall ms, of the running jobs of each program; None: estimates are as
    predicted."""

    def delayed_by(self, job: Job, now: int, time_scale: float) -> bool:
        """Return whether that job, started now, may still run at `at`."""
        if self.at is None:
            return False
        if self.delays(job.estimate_ms(time_scale), now):
            return True
        longest_ms = self.longest_run_ms(job)
        return longest_ms > 0 and self.delays(job.estimate_ms(time_scale, longest_ms), now)

    def longest_run_ms(self, job: Job) -> int:
        """Return the longest run of the job's former attempts and, so far, of its program."""
        if self.longest_ms is None:
            return 0
        return max(job.longest_ms, self.longest_ms.get(job.program, 0) if job.program else 0)

    def delays(self, run_ms: int | None, now: int) -> bool:
        return self.at is not None and (run_ms is None or now + run_ms > self.at)


def expected_end(job: Job, now: int, time_scale: float) -> int | None:
    """Return the ms, after `now`, when the job should end; None without an estimate.

    Its own report of its iterations counts while it lies ahead. It is a tenant's word: where there
    is an estimate, a job is expected for longer at most as long as it has run, so that a tenant
    cannot move the head's start away and let others of its jobs pass.
    """
    if job.phase == "stopping":
        return now
    estimated = estimated_end(job, now, time_scale)
    if job.forecast is None or job.forecast.ends_at <= now:
        return estimated
    reported = job.forecast.ends_at
    return reported if estimated is None else min(reported, max(estimated, now + job.ran_ms(now)))


def estimated_end(job: Job, now: int, time_scale: float) -> int | None:
    """Return the ms, after `now`, when the job should end by its estimate; None without one.

    An estimate that was overrun is doubled until it lies ahead.
    """
    run_ms = job.estimate_ms(time_scale)
    if run_ms is None:
        return None
    began = job.started_at or job.placed_at or now
    while began + run_ms <= now:
        run_ms *= 2
    return began + run_ms


def head_of(
    view: View, trial: Trial, job: Job, shape: Shape, avoid: Avoid, placed: Iterable[Assignment]
) -> QueueHead:
    """Return the head: jobs on GPUs end one by one, as expected, until it fits."""
    mark = len(trial.log)
    try:
        room = RoomCounter(trial, shape, avoid)
        for end, slots in releases(view, placed):
            room.give(slots)
            if room.fits() and (target := place(trial, shape, avoid)):
                nodes = frozenset(slot.node_id for slot in target)
                longest_ms = longest_runs(view) if view.guards_estimates else None
                return QueueHead(job.job_id, end, nodes, longest_ms)
        return QueueHead(job.job_id, None)
    finally:
        trial.rollback(mark)


def longest_runs(view: View) -> dict[Program, int]:
    """Return the longest run so far, wall ms, of the running jobs of each program."""
    began: dict[Program, int] = {}
    for job in view.running.values():
        program, started_at = job.program, job.started_at
        if program and started_at and began.get(program, started_at) >= started_at:
            began[program] = started_at
    return {program: view.now - started_at for program, started_at in began.items()}


def releases(view: View, placed: Iterable[Assignment]) -> Iterator[tuple[int, list[Slot]]]:
    """Yield the slots that become free and when, in the order of (expected end, job id)."""
    now, scale = view.now, view.time_scale
    held = [(job, slots_of(job)) for job in view.running.values()]
    held += [(assignment.job, assignment.slots) for assignment in placed]
    ends = [
        (end, job.job_id, slots)
        for job, slots in held
        if (end := expected_end(job, now, scale)) is not None
    ]
    for end, _, slots in sorted(ends):
        yield end, slots


class RoomCounter:
    """The number of workers of one shape that fit, updated slot by slot as GPUs come back."""

    def __init__(self, trial: Trial, shape: Shape, avoid: Avoid) -> None:
        self._trial = trial
        self._shape = shape
        self._avoid = avoid
        board = trial.board
        self._workers = (
            0
            if shape.is_share
            else sum(self._of(board.nodes[name]) for name in board.upward(shape.types, shape.gpus))
        )

    def give(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            node = self._trial.board.nodes[slot.node_id]
            before = self._of(node)
            self._trial.give((slot,))
            self._workers += self._of(node) - before

    def fits(self) -> bool:
        """Return whether the gang may fit: exact for whole GPUs, always true for shares."""
        return self._shape.is_share or self._workers >= self._shape.min_workers

    def _of(self, node: Node) -> int:
        shape = self._shape
        if shape.is_share or not node.indexed or node.node_id in self._avoid:
            return 0
        if shape.types and node.kind.gpu_type not in shape.types:
            return 0
        return node.room(shape)
