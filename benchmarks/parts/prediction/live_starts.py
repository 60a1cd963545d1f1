"""Start estimates that the live rules publish, beside the starts of the same run.

The begin of a trace is played through the cores of the services on a virtual clock: the estimates
are the events of priority, calibrated by every start that it has seen since the pool was empty. The
first estimate of a wait is judged, in the last 40 % of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from benchmarks.parts.prediction.starts import LOAD, EstimatedStarts, jobs_to_estimate
from shared.contracts.pools import QueueMode
from shared.contracts.ranking import JobStartEstimated, QueueChanged
from shared.ledger.decider import Fact
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.run import simulate
from simulator.engine.scenario import job_id

LEAST_STARTS = 20
"""Fewer estimates than this say nothing of a share."""


@dataclass(slots=True)
class FirstEstimates:
    """The first estimate of each job and its first start, in ms, from the ledger of priority."""

    estimates: dict[str, tuple[int, JobStartEstimated]] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)

    def note(self, fact: Fact) -> None:
        match fact.event:
            case JobStartEstimated(job_id=name) as event:
                self.estimates.setdefault(name, (fact.at, event))
            case QueueChanged(running=running):
                for run in running:
                    self.starts.setdefault(run.job_id, run.since)


def estimate_live_starts(trace: str, mode: QueueMode, jobs: int) -> EstimatedStarts | None:
    """Play the first jobs of the trace by FCFS in that queue mode; None if hardly any waits."""
    options = SimulationOptions(base_policy="fcfs", queue_mode=mode, load=LOAD)
    scenario, _ = build_scenario(jobs_to_estimate(trace, jobs), options)
    pool = scenario.pool.model_copy(update={"publish_predictions": True})
    first = FirstEstimates()
    outcome = simulate(replace(scenario, pool=pool), on_ranking=first.note).outcome
    rows = []
    for index in np.flatnonzero(outcome.in_window & outcome.fits).tolist():
        name = job_id(index)
        if name not in first.estimates or name not in first.starts:
            continue
        at, event = first.estimates[name]
        assert event.simulated_s is not None
        times = np.array([event.p10_at, event.p50_at, event.p90_at, first.starts[name]])
        delays_s = (times - at) / 1000.0 * pool.time_scale
        rows.append((*delays_s, *event.simulated_s, at / 1000.0 * pool.time_scale))
    if len(rows) < LEAST_STARTS:
        return None
    columns = np.array(rows, np.float64)
    return EstimatedStarts(columns[:, :3], columns[:, 3], columns[:, 4:7], columns[:, 7])
