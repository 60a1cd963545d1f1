"""Estimates of starts that were published, until the jobs start: what came true is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from services.priority.core.history.coverage import Coverage
from services.priority.core.history.start_calibration import StartCalibration
from shared.contracts.ranking import JobStartEstimated

Delays = tuple[float, ...]


@dataclass(slots=True)
class OpenEstimate:
    """Times in wall ms: of the first estimate of this wait, which is judged, and of the last."""

    first_at: int
    first: tuple[int, int, int]
    simulated_s: Delays | None
    """Delays of the first one before calibration, cluster s; None in records of old releases."""
    p10_at: int
    p50_at: int
    p90_at: int
    teaches: bool = True
    """Whether the calibration learns from the first one, see `StartCalibration.sample`."""
    learnt: int = 0
    """Starts that the calibration had learnt from at the first one."""

    def delay_s(self, at: int, time_scale: float) -> float:
        """Return the cluster seconds from the first estimate to `at` ms."""
        return max(0, at - self.first_at) / 1000.0 * time_scale

    def first_delays_s(self, time_scale: float) -> Delays:
        """Return the delays by which the first estimate is judged, in cluster s."""
        if self.simulated_s is not None:
            return self.simulated_s
        early, middle, late = (self.delay_s(time, time_scale) for time in self.first)
        return early, middle, late


@dataclass(slots=True)
class OpenEstimates:
    """Open estimates by job, and how well earlier ones held; only `evolve` changes it."""

    by_job: dict[str, OpenEstimate] = field(default_factory=dict)
    calibration: StartCalibration = field(default_factory=StartCalibration)
    coverage: Coverage = field(default_factory=Coverage)

    def note(self, event: JobStartEstimated, at: int, time_scale: float) -> None:
        """Note an estimate that was published at that ms."""
        times = (event.p10_at, event.p50_at, event.p90_at)
        estimate = self.by_job.get(event.job_id)
        if estimate is None:
            teaches = self.calibration.sample(at, time_scale)
            learnt = self.calibration.learnt
            first = OpenEstimate(at, times, event.simulated_s, *times, teaches, learnt)
            self.by_job[event.job_id] = first
        else:
            estimate.p10_at, estimate.p50_at, estimate.p90_at = times

    def start(self, job_id: str, at: int, time_scale: float) -> None:
        """Learn from a job that got its GPUs."""
        estimate = self.by_job.pop(job_id, None)
        if estimate is None:
            return
        if estimate.teaches:
            delays_s = estimate.first_delays_s(time_scale)
            self.calibration.learn(delays_s, estimate.delay_s(at, time_scale))
        is_inside = estimate.first[0] <= at <= estimate.first[2]
        self.calibration.outside.judge(is_inside)
        self.coverage.add(is_inside)

    def drop(self, job_id: str) -> None:
        """Forget the estimate of a job that left without a start."""
        self.by_job.pop(job_id, None)

    def outlived(self, now: int, time_scale: float) -> Iterator[tuple[Delays, float]]:
        """Yield the delays estimated for waiting jobs that are to teach, and those up to now."""
        for estimate in self.by_job.values():
            if estimate.teaches and self.calibration.remembers(estimate.learnt):
                yield estimate.first_delays_s(time_scale), estimate.delay_s(now, time_scale)
