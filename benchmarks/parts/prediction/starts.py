"""Start estimates beside the starts of a replay: jobs of a queue, each estimated when it entered.

The trace is scheduled by the compiled kernel; the estimate sees the jobs that then ran and waited,
and distributions from the jobs that had ended by then. Estimates are learnt from once the job has
started.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from benchmarks.parts.policies.continuous import Replay, replay_of
from benchmarks.parts.prediction.jobs import JUDGED_FROM, Floats, Mask
from benchmarks.parts.prediction.waiting_estimate import WaitingEstimate
from services.priority.core.history.distributions import VALUES
from services.priority.core.history.start_calibration import (
    StartCalibration,
    shift_interval,
    simulated_intervals,
)
from services.priority.core.starts.simulated_starts import Load, simulate_starts
from shared.contracts.pools import QueueMode
from simulator.kernel.causal import distributions_of
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import Work
from simulator.metrics.bootstrap import gain, hours
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import load

LOAD = 0.9
LEAST_WAIT_S = 60.0
"""Jobs that start sooner get no estimate in practice: they are no question."""
JOBS = 500
"""Estimated jobs per trace, evenly over those that wait; those of the judged window count."""
CLUSTERS = {"msft_itp": "cluster03"}
"""Its tenants never share GPUs: one cluster with a queue."""


@dataclass(frozen=True, slots=True)
class EstimatedStarts:
    """Delays that were predicted and those that came true; [n, 3] and [n], s.

    `at_s` [n] is when each estimate was made.
    """

    predicted_s: Floats
    delay_s: Floats
    uncalibrated_s: Floats
    at_s: Floats

    @property
    def coverage(self) -> float:
        """Share of the starts within p10 and p90."""
        return covered(self.predicted_s, self.delay_s)

    @property
    def coverage_ends(self) -> tuple[float, float] | None:
        """Interval of 95 % of that share; None where it cannot be known.

        The bootstrap draws blocks of hours, as jobs that wait together hold or fail together.
        """
        held = are_within(self.predicted_s, self.delay_s).astype(np.float64)
        share = gain(np.ones(len(held)), held, hours(self.at_s, float(self.at_s.min())))
        if not share.low < share.high:
            return None
        return 1.0 + share.low, min(1.0, 1.0 + share.high)

    def plain(self) -> dict[str, object]:
        """Return the share within p10 and p90, and the error of p50 in log10 of s + 60."""
        ends = self.coverage_ends
        errors = np.log10(self.predicted_s[:, 1] + 60.0) - np.log10(self.delay_s + 60.0)
        return {
            "starts": len(self.delay_s),
            "coverage": round(self.coverage, 4),
            "coverage_ends": None if ends is None else [round(end, 4) for end in ends],
            "coverage_uncalibrated": round(covered(self.uncalibrated_s, self.delay_s), 4),
            "above_p90": round(float((self.delay_s > self.predicted_s[:, 2]).mean()), 4),
            "error_p50_log10": round(float(np.abs(errors).mean()), 4),
            "median_delay_s": round(float(np.median(self.delay_s)), 1),
            "median_width_s": round(
                float(np.median(self.predicted_s[:, 2] - self.predicted_s[:, 0])), 1
            ),
        }


def are_within(predicted_s: Floats, delay_s: Floats) -> Mask:
    """Return which delays lie within p10 and p90, [n]."""
    return np.asarray((predicted_s[:, 0] <= delay_s) & (delay_s <= predicted_s[:, 2]))


def covered(predicted_s: Floats, delay_s: Floats) -> float:
    return float(are_within(predicted_s, delay_s).mean())


def jobs_to_estimate(trace: str, most: int) -> list[WorkloadJob]:
    """Return the first jobs of the trace, or of the cluster whose queue is looked at."""
    cluster = CLUSTERS.get(trace)
    if cluster is None:
        return load(trace, most).jobs
    return [job for job in load(trace).jobs if job.tenant == cluster][:most]


def estimate_starts(trace: str, mode: QueueMode) -> EstimatedStarts | None:
    """Replay the trace by FCFS in that queue mode; None if hardly any job waits."""
    replay = replay_of(trace, LOAD, CLUSTERS.get(trace))
    outcome = simulate(replay.work, replay.sizes, Rules("fcfs", mode)).outcome
    snapshots = ReplaySnapshots.of(replay, outcome.start_s, outcome.end_s)
    chosen = np.flatnonzero(outcome.fits & (snapshots.start_s - snapshots.submit_s > LEAST_WAIT_S))
    if len(chosen) < 20:
        return None
    chosen = chosen[np.unique(np.linspace(0, len(chosen) - 1, JOBS).astype(np.int64))]
    return follow(snapshots, chosen.tolist(), mode)


def follow(
    snapshots: ReplaySnapshots, chosen: list[int], mode: QueueMode
) -> EstimatedStarts | None:
    """Estimate the chosen jobs in the order of their submission, learning from their starts."""
    calibration = StartCalibration()
    waiting: list[WaitingEstimate] = []
    judged: list[WaitingEstimate] = []
    for job in chosen:
        now_s = float(snapshots.submit_s[job])
        while waiting and waiting[0].start_s <= now_s:
            heapq.heappop(waiting).settle(calibration)
        (simulated,) = simulated_intervals(snapshots.simulate(job, mode)[None, :])
        if simulated is None:
            continue
        outlived = [
            (one.simulated, now_s - one.at_s)
            for one in waiting
            if one.teaches and calibration.remembers(one.learnt)
        ]
        interval = shift_interval(simulated, calibration.shifts(outlived))
        teaches = calibration.sample(round(now_s * 1000), 1.0)
        start_s, learnt = float(snapshots.start_s[job]), calibration.learnt
        one = WaitingEstimate(start_s, now_s, simulated, interval, teaches, learnt)
        heapq.heappush(waiting, one)
        if now_s >= snapshots.judged_from_s:
            judged.append(one)
    return table_of(judged) if judged else None


def table_of(estimates: list[WaitingEstimate]) -> EstimatedStarts:
    return EstimatedStarts(
        np.array([one.interval for one in estimates]),
        np.array([one.delay_s for one in estimates]),
        np.array([one.simulated for one in estimates]),
        np.array([one.at_s for one in estimates]),
    )


@dataclass(frozen=True, slots=True)
class ReplaySnapshots:
    """The jobs of a replay, of which those that run or wait at a time are picked."""

    work: Work
    capacity_gpus: float
    submit_s: Floats
    start_s: Floats
    end_s: Floats
    gpus: Floats
    distributions: Floats
    judged_from_s: float

    @classmethod
    def of(cls, replay: Replay, start_s: Floats, end_s: Floats) -> ReplaySnapshots:
        submit_s = replay.work.submit_ms / 1000.0
        zero_s = float(np.nanmin(start_s - submit_s))
        starts_s = np.where(np.isnan(start_s), np.inf, start_s)
        ends_s = np.where(np.isnan(end_s), np.inf, end_s)
        assert zero_s >= -1e-6, "the outcome counts time from the same zero as the trace"
        known_ms = np.where(np.isinf(ends_s), 2**62, ends_s * 1000.0).astype(np.int64)
        return cls(
            replay.work,
            float(replay.capacity_gpus),
            submit_s,
            starts_s,
            ends_s,
            replay.work.gang.astype(np.float64),
            distributions_of(replay.work, known_ms),
            submit_s[0] + JUDGED_FROM * (submit_s[-1] - submit_s[0]),
        )

    def simulate(self, job: int, mode: QueueMode) -> Floats:
        """Return simulated delays of the job, [SCENARIOS]."""
        now_s = self.submit_s[job]
        holding = np.flatnonzero((self.start_s <= now_s) & (now_s < self.end_s))
        before = np.flatnonzero((self.submit_s[:job] <= now_s) & (self.start_s[:job] > now_s))
        waiting = np.append(before, job)
        free_gpus = self.capacity_gpus - float(self.gpus[holding].sum())
        delays_s = simulate_starts(
            free_gpus,
            self.load(holding, now_s - self.start_s[holding]),
            self.load(waiting, np.zeros(len(waiting))),
            mode,
            target=len(waiting) - 1,
        )
        return np.asarray(delays_s[-1])

    def load(self, jobs: np.ndarray[tuple[int, ...], np.dtype[np.intp]], ran_s: Floats) -> Load:
        p = self.distributions[jobs]
        return Load(self.gpus[jobs], p, ran_s, p @ VALUES / p.sum(axis=1))
