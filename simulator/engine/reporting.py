"""Simulated trainings that report their iterations, as those with `berth_reporter` do on nodes."""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.contracts.attempts import JobMigrated, JobPreempted, JobStarted, JobStopRequested
from shared.contracts.placement import JobPlaced
from shared.contracts.reports import WorkerProgressed
from shared.ledger.decider import Fact
from simulator.engine.executor import VirtualExecutor
from simulator.workload.fixed import draw_fixed

FIRST_MS = 10_000
"""Wall ms from a start to its first report: executors pass on one in so long."""
EVERY_MS = 60_000
"""Wall ms between two reports of a start: placement records no more of them."""
STEPS = 1_000_000
"""Iterations of every training: so many that they are no grain of its rest."""
ERROR = 0.1
"""Share by which a reported rest is wrong at most: the mean pace so far is not that to come."""


@dataclass(slots=True)
class ReportingStart:
    """One start of a reporting job, by the allocation of its rank 0."""

    job_id: str
    allocation_id: str
    started_at: int = 0
    reports: int = 0


RestOf = Callable[[ReportingStart, float], float]
"""Returns the rest in wall ms that a start reports, given its true rest."""


def mean_pace(start: ReportingStart, rest_ms: float) -> float:
    """Return a rest that is wrong by up to `ERROR`, drawn anew for each report."""
    draw = zlib.crc32(f"{start.job_id}#{start.reports}".encode()) / 2**32
    return rest_ms * (1.0 + ERROR * (2.0 * draw - 1.0))


class ReportingJobs:
    """Jobs that report how far they are while they run; the ledger names their starts."""

    def __init__(self, job_ids: Sequence[str], share: float, rest_of: RestOf = mean_pace) -> None:
        """`job_ids` are in the order of the trace; the jobs of a smaller share are in a larger."""
        chosen = draw_fixed(len(job_ids), share).tolist()
        self._reporters = {name for name, reports in zip(job_ids, chosen, strict=True) if reports}
        self._rest_of = rest_of
        self._starts: dict[str, ReportingStart] = {}
        self._agenda: list[tuple[int, str, int]] = []
        """Time, job and time of the start of each next report."""

    @property
    def due(self) -> int | None:
        """Return the ms of the next report; None: no job reports."""
        return self._agenda[0][0] if self._agenda else None

    def note(self, fact: Fact) -> None:
        """Take a fact of the placement ledger."""
        match fact.event:
            case JobPlaced(job_id=job_id) if job_id in self._reporters:
                self._starts[job_id] = ReportingStart(job_id, f"{fact.place}/0")
            case JobStarted(job_id=job_id) if start := self._starts.get(job_id):
                start.started_at = fact.at
                heapq.heappush(self._agenda, (fact.at + FIRST_MS, job_id, fact.at))
            case (
                JobPreempted(job_id=job_id)
                | JobMigrated(job_id=job_id)
                | JobStopRequested(job_id=job_id)
            ):
                self._starts.pop(job_id, None)

    def take_due(self, now: int, executor: VirtualExecutor) -> tuple[WorkerProgressed, ...]:
        """Return the reports that are due; a job reports again and again while it runs."""
        reports: list[WorkerProgressed] = []
        while self._agenda and self._agenda[0][0] <= now:
            _, job_id, started_at = heapq.heappop(self._agenda)
            start = self._starts.get(job_id)
            if start is None or start.started_at != started_at:
                continue
            rest_ms = executor.rest_ms(start.allocation_id, now)
            if rest_ms is None:
                continue
            reports.append(report_of(start, now, self._rest_of(start, rest_ms)))
            start.reports += 1
            heapq.heappush(self._agenda, (now + EVERY_MS, job_id, started_at))
        return tuple(reports)


def report_of(start: ReportingStart, now: int, rest_ms: float) -> WorkerProgressed:
    """Return a report from which that rest follows: iterations to come at their mean time."""
    ran_ms = now - start.started_at
    left = max(1, round(STEPS * rest_ms / (rest_ms + ran_ms)))
    return WorkerProgressed(
        allocation_id=start.allocation_id,
        job_id=start.job_id,
        ran_ms=ran_ms,
        step=STEPS - left,
        steps_total=STEPS,
        iteration_s=rest_ms / 1000 / left,
    )
