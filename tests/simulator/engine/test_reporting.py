"""Jobs that report their iterations in the faithful engine: honest ones, and two that lie."""

from __future__ import annotations

import pytest

from shared.contracts.pools import LOG_SCORE_MARGIN
from shared.contracts.ranking import Progressed, QueueChanged
from shared.ledger.decider import Fact
from simulator.engine.reporting import (
    ERROR,
    EVERY_MS,
    ReportingJobs,
    ReportingStart,
    RestOf,
    mean_pace,
)
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, job_id, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.engine.world import BEGIN
from simulator.workload.rows import WorkloadJob
from tests.simulator.kernel.workloads import job

HOUR_S = 3600.0
SOON_MS = 1.1 * EVERY_MS
"""Little more than the time to the next report: so a job can say at any time that it ends soon."""


def scenario(jobs: list[WorkloadJob], **settings: object) -> Scenario:
    more: dict[str, object] = {"use_progress": True, **settings}
    return Scenario(
        jobs=jobs,
        nodes=equal_nodes(1, pool=POOL),
        pool=simulated_pool(time_scale=60.0, **more),
        window_s=window_of(jobs),
        checkpoint_s=600.0,
    )


def play(one: Scenario, reporting: ReportingJobs | None) -> tuple[Simulation, list[Progressed]]:
    """Return the simulation, and the reports that placement recorded."""
    recorded: list[Progressed] = []

    def note(fact: Fact) -> None:
        if isinstance(fact.event, QueueChanged):
            recorded.extend(fact.event.progressed)

    return simulate(one, reporting=reporting, on_ranking=note), recorded


def test_the_reported_ends_are_nearly_the_true_ones() -> None:
    jobs = [job(n, (600.0 * n, HOUR_S * (2 + n), 1, 1)) for n in range(6)]
    one = scenario(jobs)
    ids = [job_id(n) for n in range(6)]
    simulation, recorded = play(one, ReportingJobs(ids, 1.0))
    assert {report.job_id for report in recorded} == set(ids)
    for report in recorded:
        number = ids.index(report.job_id)
        end, start = (int(side[number]) for side in (simulation.end_ms, simulation.start_ms))
        assert abs(report.ends_at - BEGIN - end) <= ERROR * (end - start) + 1
    assert play(one, ReportingJobs(ids, 0.0))[1] == []


def test_a_pool_that_ignores_reports_records_none() -> None:
    one = scenario([job(0, (0.0, HOUR_S, 1, 1))], use_progress=False)
    assert play(one, ReportingJobs([job_id(0)], 1.0))[1] == []


def always_soon(start: ReportingStart, rest_ms: float) -> float:
    return SOON_MS


def soon_after_one_honest_report(start: ReportingStart, rest_ms: float) -> float:
    return SOON_MS if start.reports else rest_ms


@pytest.mark.parametrize("rest_of", [mean_pace, always_soon, soon_after_one_honest_report])
def test_a_job_that_always_says_that_it_ends_soon_is_stopped(rest_of: RestOf) -> None:
    """All GPUs are held by a job of twelve days, and now and then a job of three hours comes."""
    jobs = [job(0, (0.0, 288 * HOUR_S, 1, 8), "liar", "long")]
    jobs += [job(n, (n * 12 * HOUR_S, 3 * HOUR_S, 1, 8), "u", "short") for n in range(1, 20)]
    one = scenario(
        jobs,
        base_policy="gittins",
        preemption="ranked",
        preempt_margin=LOG_SCORE_MARGIN,
        preemption_protection="progress",
    )
    reporting = ReportingJobs([job_id(0)], 1.0, rest_of)
    simulation, _ = play(one, reporting)
    assert simulation.outcome.starts[0] > 3
    assert (simulation.outcome.end_s[1:] < simulation.outcome.end_s[0]).all()
