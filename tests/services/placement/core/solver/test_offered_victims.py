"""The victims of a window are numbered once, with what each holds on its nodes."""

from __future__ import annotations

from services.placement.core.solver.offered_victims import OfferedVictims, offer_victims
from services.placement.core.solver.window import VICTIMS
from tests.services.placement.core.lane import job, lane
from tests.services.placement.core.solver.rounds import contended, preempting, window_of


def test_greedys_victims_come_first_and_no_job_twice() -> None:
    with window_of(preempting("x", "y")) as (window, greedy):
        victims = offer_victims(window, greedy)
        assert greedy.evictions[0].job.job_id == next(iter(victims.jobs))
        assert sorted(victims.jobs) == ["low0", "low1"]
        assert sorted(victims.numbers().values()) == [0, 1]
        held = {name: [share.whole for share in own] for name, own in victims.shares.items()}
        assert held == {"x": [8], "y": [8]}


def test_a_window_of_jobs_that_may_stop_none_has_no_victims() -> None:
    with window_of(contended("x")) as (window, greedy):
        assert offer_victims(window, greedy) == OfferedVictims()


def test_victims_are_limited() -> None:
    pool = lane("x", gpus=VICTIMS + 1)
    pool.run(*(job(f"r{n}") for n in range(VICTIMS + 1)))
    victims = OfferedVictims()
    for running in pool.state.jobs.values():
        victims.offer(running)
    assert len(victims.jobs) == VICTIMS
