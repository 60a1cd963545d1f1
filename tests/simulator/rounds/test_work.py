from __future__ import annotations

from shared.performance.footprint import Footprint
from shared.performance.rates import RateTable
from simulator.rounds.work import Ran, StepWork

ON_V = Footprint("v", (1,), 1)
RATES = RateTable({("v", 1): 0.5})


def test_work_ends_when_its_steps_are_done() -> None:
    work = StepWork(40.0, RATES)
    assert work.run(ON_V, 60.0) == Ran(60.0, False)
    assert work.estimates().work_left == 10.0
    assert work.run(ON_V, 60.0) == Ran(20.0, True)


def test_whole_steps_leave_the_rest_of_a_round() -> None:
    work = StepWork(40.0, RATES, whole_steps=True)
    assert work.run(ON_V, 61.0) == Ran(60.0, False)


def test_on_a_type_without_a_rate_nothing_is_done() -> None:
    work = StepWork(40.0, RATES)
    assert work.run(Footprint("p", (1,), 1), 60.0) == Ran(60.0, False)
    assert work.estimates().work_left == 40.0
