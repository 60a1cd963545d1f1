"""Figures of one run of a pool with spot jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from services.admission.core.spot.guarantees import GuaranteeLog
from simulator.spot.jobs import DAY_S, GUARANTEE_HOURS, SpotTraceJob

SCORED_FROM_S = DAY_S
"""Spot jobs submitted before are part of the load and not scored."""
REST_S = DAY_S
"""Jobs submitted in the last day of a run are not scored either, as they end after it."""


@dataclass(slots=True)
class SpotOutcome:
    """Sums while the run goes on."""

    capacity: int
    waits_s: dict[bool, dict[int, float]] = field(default_factory=lambda: {False: {}, True: {}})
    """By spot or not: time in the queue of each job, also after evictions."""
    submit_s: dict[int, float] = field(default_factory=dict)
    ends_s: dict[int, float] = field(default_factory=dict)
    evictions: int = 0
    lost_gpu_s: float = 0.0
    used_gpu_s: float = 0.0
    spot_gpu_s: float = 0.0
    passed_s: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)

    def advance(self, step_s: float, guaranteed_gpus: int, spot_gpus: int) -> None:
        self.passed_s += step_s
        self.used_gpu_s += step_s * (guaranteed_gpus + spot_gpus)
        self.spot_gpu_s += step_s * spot_gpus

    def note_wait(self, job: SpotTraceJob, wait_s: float) -> None:
        own = self.waits_s[job.is_spot]
        own[job.number] = own.get(job.number, 0.0) + wait_s
        self.submit_s[job.number] = job.submit_s

    def note_end(self, job: SpotTraceJob, now_s: float) -> None:
        self.ends_s[job.number] = now_s

    def note_eviction(self, job: SpotTraceJob, lost_s: float) -> None:
        self.evictions += 1
        self.lost_gpu_s += lost_s * job.gpus

    def close(self, log: GuaranteeLog, factors: list[float]) -> None:
        """Compute the figures; `_percent` of periods, GPUs or spot GPU time, `_s` in s."""
        counts = log.all_of()
        spot, guaranteed = self._scored(is_spot=True), self._scored(is_spot=False)
        waits = np.array([self.waits_s[True][own] for own in spot])
        jct = [self.ends_s[own] - self.submit_s[own] for own in spot if own in self.ends_s]
        first = np.array([self.waits_s[False][own] for own in guaranteed])
        self.figures = {
            "evictions": float(self.evictions),
            "eviction_percent": 100.0 * counts.failure_rate,
            "spot_wait_s": mean(waits),
            "spot_wait_p99_s": percentile(waits, 99),
            "spot_jct_s": mean(np.array(jct)),
            "spot_jobs": float(len(spot)),
            "spot_ended": float(len(jct)),
            "guaranteed_wait_s": mean(first),
            "guaranteed_wait_p99_s": percentile(first, 99),
            "allocated_percent": 100.0 * self.used_gpu_s / (self.capacity * self.passed_s),
            "spot_allocated_percent": 100.0 * self.spot_gpu_s / (self.capacity * self.passed_s),
            "lost_percent": 100.0 * self.lost_gpu_s / max(1.0, self.spot_gpu_s),
            "factor": mean(np.array(factors)) if factors else 1.0,
        } | {
            f"kept_{hours}h_percent": 100.0 * (1.0 - log.all_of(hours).failure_rate)
            for hours in GUARANTEE_HOURS
        }

    def _scored(self, is_spot: bool) -> list[int]:
        last_s = self.passed_s - REST_S
        return [
            own for own in self.waits_s[is_spot] if SCORED_FROM_S <= self.submit_s[own] < last_s
        ]


def mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else 0.0


def percentile(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], at: float) -> float:
    return float(np.percentile(values, at)) if len(values) else 0.0
