"""The figures of a day are folded from its ledgers."""

from __future__ import annotations

import pytest

from benchmarks.parts.live.day import Day, choose_day, scenario_of
from benchmarks.parts.live.figures import deciders_figures
from benchmarks.parts.live.ledger import LiveDay
from benchmarks.parts.policies.costs import StopCosts
from shared.contracts.attempts import AllocationReleased, JobSucceeded
from shared.ledger.decider import Fact
from shared.ledger.partition import TP
from simulator.engine.run import simulate
from simulator.engine.scenario import FIRST_MS, job_id
from simulator.engine.world import BEGIN
from tests.harness.ledger import accepted

LATE_MS = 100


@pytest.fixture(scope="module")
def day() -> Day:
    return choose_day("synthetic", 0, 4 * 3600.0, 1.1, 300.0, StopCosts(1800.0, 60.0))


@pytest.fixture(scope="module")
def facts(day: Day) -> list[Fact]:
    """The facts of both ledgers of the day under the live deciders."""
    broker = simulate(scenario_of(day), ledgers=True).broker
    assert broker is not None
    places = (TP("admission", 0), TP("placement", 0))
    return [
        fact
        for tp in places
        for record in accepted(tp, broker.entries(tp))
        for fact in record.facts()
    ]


def folded(day: Day, facts: list[Fact], later_ms: int = 0) -> LiveDay:
    began_ms = BEGIN + FIRST_MS + later_ms
    live = LiveDay(day, [job_id(n) for n in range(len(day.jobs))], began_ms)
    for fact in facts:
        live.see(fact._replace(at=fact.at + later_ms))
    return live


@pytest.mark.slow
def test_where_gpus_change_hands_in_no_time_the_ledgers_give_the_figures_of_the_deciders(
    day: Day, facts: list[Fact]
) -> None:
    live, deciders = folded(day, facts), deciders_figures(day)
    own = live.figures()
    assert own.stops == deciders.stops > 5
    assert (own.jobs_ended, own.most_starts) == (len(day.jobs), deciders.most_starts)
    assert live.over == len(day.jobs)
    # The clock of 300 cluster seconds per second has steps of 0.3 s.
    assert own.mean_wait_s == pytest.approx(deciders.mean_wait_s, abs=1.0)
    assert own.lost_share == pytest.approx(deciders.lost_share, rel=0.02)
    assert live.handover_s() < 1.0
    assert folded(day, facts, 10**6).figures() == own, "whenever the day begins"


@pytest.mark.slow
def test_what_an_end_comes_later_is_a_hand_over_and_no_loss(day: Day, facts: list[Fact]) -> None:
    ends = (AllocationReleased, JobSucceeded)
    exits = {
        fact.event.job_id
        for fact in facts
        if isinstance(fact.event, AllocationReleased) and fact.event.reason == "exited"
    }
    late = [
        fact._replace(at=fact.at + LATE_MS)
        if isinstance(fact.event, ends) and fact.event.job_id in exits
        else fact
        for fact in facts
    ]
    once, live = folded(day, facts), folded(day, late)
    assert live.handover_s() > once.handover_s()
    assert live.figures().lost_share == pytest.approx(once.figures().lost_share, rel=0.05)
