"""The outcome of the day and the cost of its stops, folded from the ledgers of a running stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.parts.live.day import Day, scenario_of
from benchmarks.parts.live.figures import RunFigures, figures_of
from shared.contracts.attempts import JobMigrated, JobPreempted
from shared.ledger.decider import Fact
from simulator.engine.observer import SimulationObserver
from simulator.engine.scenario import FIRST_MS
from simulator.metrics.outcome import ScheduleOutcome


class LiveDay:
    """A fold over the ledgers of admission and placement of the lane of the day's pool."""

    def __init__(self, day: Day, job_ids: Sequence[str], began_ms: int) -> None:
        """`began_ms` is the wall time of the first submission."""
        self._day = day
        self._gpus = {name: job.gpus for name, job in zip(job_ids, day.jobs, strict=True)}
        self._observer = SimulationObserver(scenario_of(day), job_ids, began_ms - FIRST_MS)
        self._last_ms = began_ms
        self._lost_gpu_s = 0.0

    @property
    def over(self) -> int:
        """Jobs that have ended or were rejected."""
        return self._observer.over

    def see(self, fact: Fact) -> None:
        self._last_ms = max(self._last_ms, fact.at)
        if fact.ledger == "admission":
            self._observer.admission(fact)
            return
        if isinstance(fact.event, JobPreempted | JobMigrated):
            # Every stop is followed by a start, which pays a restart.
            lost_s = fact.event.lost_work_s + self._day.costs.restart_s
            self._lost_gpu_s += lost_s * self._gpus[fact.event.job_id]
        self._observer.placement(fact)

    def outcome(self) -> ScheduleOutcome:
        """Return the outcome; `lost_s` has the time of hand-overs too."""
        outcome = self._observer.outcome(self._last_ms)
        submit_s = np.array([job.submit_s for job in self._day.jobs], np.float64)
        return replace(outcome, submit_s=submit_s)

    def figures(self) -> RunFigures:
        outcome = self.outcome()
        held_gpu_s = float((outcome.held_s * outcome.gpus).sum())
        return figures_of(outcome, self._lost_gpu_s / held_gpu_s if held_gpu_s else 0.0)

    def handover_s(self) -> float:
        """Return the cluster s for which a start holds its GPUs beyond work and what stops lost.

        That is the time of preparing, of the order to go, of the reports of end and stop, and of
        the release, as a mean over starts, weighted by GPUs.
        """
        outcome = self.outcome()
        ended = outcome.ended
        held = float(((outcome.held_s - outcome.duration_s) * outcome.gpus)[ended].sum())
        starts = float((outcome.starts * outcome.gpus)[ended].sum())
        return max(held - self._lost_gpu_s, 0.0) / starts if starts else 0.0
