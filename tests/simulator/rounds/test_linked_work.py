from __future__ import annotations

import pytest

from shared.performance.footprint import Footprint
from shared.performance.links import LinkTier
from simulator.rounds.linked_work import LinkedWork
from tests.shared.schedulers.racked import LINKS, SENSITIVE

SHAPES = {
    LinkTier.NODE: Footprint("v", (2,), 4, racks=1),
    LinkTier.RACK: Footprint("v", (1, 1), 4, racks=1),
    LinkTier.SPINE: Footprint("v", (1, 1), 4, racks=2),
}


def test_a_job_is_as_slow_over_the_spine_as_its_steps_say() -> None:
    seconds = {
        tier: LinkedWork(100.0, SENSITIVE).run(own, 1e6).seconds for tier, own in SHAPES.items()
    }
    for tier, own in seconds.items():
        step_s = SENSITIVE.step_s(2, tier)
        assert step_s is not None
        assert own == pytest.approx(100.0 * step_s)
    slowdown = SENSITIVE.slowdown(2, LinkTier.SPINE, LinkTier.NODE)
    assert seconds[LinkTier.SPINE] / seconds[LinkTier.NODE] == pytest.approx(slowdown)


def test_a_share_of_the_spine_slows_down_there_alone() -> None:
    work = LinkedWork(100.0, SENSITIVE, spine_bytes_per_s=500.0)
    assert work.step_s(SHAPES[LinkTier.SPINE]) == 1.0 + 20.0
    assert work.step_s(SHAPES[LinkTier.RACK]) == SENSITIVE.step_s(2, LinkTier.RACK)
    work.spine_bytes_per_s = 1e9
    assert work.step_s(SHAPES[LinkTier.SPINE]) == 1.0 + 10.0, "the link is no faster than itself"
    assert LINKS.spine is not None


def test_work_that_ends_in_the_time_ends_early_and_counts_its_communication() -> None:
    work = LinkedWork(10.0, SENSITIVE)
    assert work.run(SHAPES[LinkTier.SPINE], 55.0) == (55.0, False)
    assert work.done == 5.0
    assert work.left_s(SHAPES[LinkTier.SPINE]) == pytest.approx(55.0)
    assert work.communicating_s == pytest.approx(50.0)
    assert work.estimates().work_left == 5.0
    assert work.run(SHAPES[LinkTier.SPINE], 100.0) == (55.0, True)


def test_on_unknown_links_nothing_is_done() -> None:
    work = LinkedWork(10.0, SENSITIVE)
    assert work.run(Footprint("v", (1, 1), 4), 60.0) == (60.0, False)
    assert (work.done, work.most_gpus()) == (0.0, None)
    assert work.left_s(Footprint("v", (1, 1), 4)) is None
