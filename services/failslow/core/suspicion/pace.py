"""The pace of each watched job: pure, disposable, and not part of the ledger.

In synchronous training all ranks take as long as the slowest, so the whole iterations of one
process show whether the job has become slow. A shell keeps one `JobPaces` per lane. After a restart
a job whose fault is open is followed from the pace in its fault, any other one anew. A job is
compared once with earlier runs of its series, as one that is slow from its start has no change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import exp, log

import numpy as np

from services.failslow.core.detection.change import Change
from services.failslow.core.detection.detector import Detector
from services.failslow.core.detection.kinds import is_training
from services.failslow.core.gangs import times_of_workers
from services.failslow.core.measures.slow_start import (
    is_comparable,
    settled_level,
    slow_since_start,
)
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.comparison import LONGEST_S, SHORTEST_S
from services.failslow.core.suspicion.pipeline_profiles import PipelineProfiles
from services.failslow.core.suspicion.wait_profiles import WaitProfiles
from shared.contracts.paces import JobPaceChanged, JobPaceSettled
from shared.contracts.reports import IterationTimes, TelemetryReported

BLOCK = 32
"""Jobs that one detector follows."""
PENDING = 1024
"""Iterations of a job that wait for their turn; older ones are dropped."""
Observation = tuple[int, float, float]
"""Number of an iteration, its seconds, its work."""


@dataclass(slots=True)
class JobPace:
    """The place of a job in a detector, and what it has reported."""

    attempt: int
    detector: Detector
    row: int
    process: int | None = None
    at: int = -1
    step: int = -1
    work: float | None = None
    """Work of the newest iteration; None: the job does not report any."""
    pending: deque[Observation] = field(default_factory=lambda: deque(maxlen=PENDING))
    series: str = ""
    is_compared: bool = False
    """Whether it was compared with earlier runs of its series."""
    is_slow_since_start: bool = False


class JobPaces:
    """Follows whole iterations of the first rank of each watched job."""

    def __init__(self) -> None:
        self._paces: dict[str, JobPace] = {}
        self._free: list[tuple[Detector, int]] = []
        self._profiles = WaitProfiles()
        self._pipelines = PipelineProfiles()
        self._settled: list[JobPaceSettled] = []

    def add(self, report: TelemetryReported, gangs: Mapping[str, GangState]) -> None:
        """Add a report; one that is read twice changes nothing."""
        self._profiles.add(report, gangs)
        self._pipelines.add(report, gangs)
        for gang, times in times_of_workers(report, gangs):
            if not gang.validates and times.rank == min(gang.workers):
                self._note(self._pace(times.job_id, gang), times, report.at)

    def take_changes(self, state: FailSlowState) -> list[JobPaceChanged]:
        """Return the verified changes since the last call, and forget jobs that ended."""
        for job_id in [job for job in self._paces if job not in state.gangs]:
            self._forget(job_id)
        changes: list[JobPaceChanged] = []
        while waiting := {job: pace for job, pace in self._paces.items() if pace.pending}:
            changes += self._step(waiting)
            changes += self._compare(state, waiting)
        self._profiles.forget_ended(state)
        self._pipelines.forget_ended(state)
        return [self._pipelines.described(self._profiles.diagnosed(one)) for one in changes]

    def take_settled(self) -> list[JobPaceSettled]:
        """Return the paces of attempts that have ended since the last call."""
        settled, self._settled = self._settled, []
        return settled

    def _compare(
        self, state: FailSlowState, waiting: Mapping[str, JobPace]
    ) -> Iterator[JobPaceChanged]:
        """Compare jobs that have run for a while with earlier runs of their series."""
        for job_id, pace in waiting.items():
            if pace.is_compared or not is_comparable(pace.detector, pace.row):
                continue
            pace.is_compared = True
            usual = state.paces.usual(pace.series, has_work=pace.work is not None)
            if usual and (change := slow_since_start(pace.detector, pace.row, usual)):
                pace.is_slow_since_start = True
                yield _message(job_id, pace, change, usual.runs)

    def _pace(self, job_id: str, gang: GangState) -> JobPace:
        pace = self._paces.get(job_id)
        if pace is not None and pace.attempt == gang.attempt:
            return pace
        self._forget(job_id)
        if not self._free:
            detector = Detector(BLOCK)
            self._free = [(detector, row) for row in reversed(range(BLOCK))]
        detector, row = self._free.pop()
        detector.begin(row)
        if gang.pace is not None:
            work = gang.pace.work or 1.0
            level = log(max(gang.pace.usual_s, SHORTEST_S) / work)
            detector.resume(row, level, log(max(gang.pace.slowdown, 1.01)), work)
        self._paces[job_id] = JobPace(gang.attempt, detector, row)
        return self._paces[job_id]

    def _forget(self, job_id: str) -> None:
        pace = self._paces.pop(job_id, None)
        if pace is None:
            return
        since_start = pace.is_slow_since_start
        level = settled_level(pace.detector, pace.row, is_slow_since_start=since_start)
        if pace.series and level is not None:
            self._settled.append(
                JobPaceSettled(
                    job_id=job_id,
                    attempt=pace.attempt,
                    series=pace.series,
                    pace_s=exp(level),
                    has_work=pace.work is not None,
                )
            )
        self._free.append((pace.detector, pace.row))

    def _note(self, pace: JobPace, times: IterationTimes, at: int) -> None:
        if times.process is not None:
            pace.process = times.process if pace.process is None else pace.process
            if times.process != pace.process:
                return
        if not times.steps and at <= pace.at:
            return
        pace.at, pace.series = max(pace.at, at), times.series
        for step, seconds, work in _training(times, pace.step + 1):
            if step > pace.step:
                if pace.step < 0 or (pace.work and work):
                    pace.work = work
                pace.step = step
                pace.pending.append((step, seconds, pace.work or 1.0))

    def _step(self, waiting: Mapping[str, JobPace]) -> Iterator[JobPaceChanged]:
        """Observe the oldest iteration of each of these jobs."""
        blocks: dict[int, list[tuple[int, str, JobPace]]] = {}
        for job_id, pace in waiting.items():
            blocks.setdefault(id(pace.detector), []).append((pace.row, job_id, pace))
        for jobs in blocks.values():
            jobs.sort(key=lambda job: job[0])
            names = {row: (job_id, pace) for row, job_id, pace in jobs}
            iteration, seconds, work = zip(
                *(pace.pending.popleft() for _, _, pace in jobs), strict=True
            )
            changes = jobs[0][2].detector.observe(
                np.array(list(names)), np.array(iteration), np.array(seconds), np.array(work)
            )
            for change in changes:
                yield _message(*names[change.row], change)


def _training(times: IterationTimes, following: int) -> Iterator[tuple[int, float, float | None]]:
    """Yield number, seconds and work of each iteration of training."""
    works = times.tokens or times.samples or (None,) * len(times.iteration_s)
    kinds = times.kinds or ("train",) * len(times.iteration_s)
    steps = times.steps or range(following, following + len(times.iteration_s))
    columns = zip(steps, times.iteration_s, works, kinds, strict=False)
    for step, seconds, work, kind in columns:
        if is_training(kind) and SHORTEST_S <= seconds <= LONGEST_S:
            yield step, seconds, float(work) if work else None


def _message(job_id: str, pace: JobPace, change: Change, earlier_runs: int = 0) -> JobPaceChanged:
    detector = pace.detector
    work = exp(float(detector.work[pace.row])) if pace.work else 1.0
    usual_s = exp(change.level) * work
    return JobPaceChanged(
        job_id=job_id,
        attempt=pace.attempt,
        is_slow=change.kind == "slow",
        since_step=change.onset,
        iterations=change.count,
        slowdown=change.slowdown,
        iteration_s=usual_s * change.slowdown,
        usual_s=usual_s,
        score=change.score,
        confidence=min(max(change.confidence, 0.0), 1.0),
        work=work if pace.work else 0.0,
        earlier_runs=earlier_runs,
    )
