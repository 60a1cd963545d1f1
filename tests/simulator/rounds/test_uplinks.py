from __future__ import annotations

from typing import ClassVar

import pytest

from shared.performance.links import GangSteps, Link, TieredLinks
from shared.schedulers.hooks import Allotments, Hooks, Memory, Placements
from shared.schedulers.view import ClusterView
from simulator.rounds.job import RoundsJob
from simulator.rounds.linked_work import LinkedWork
from simulator.rounds.uplinks import Crossing, RackedWorld, part_of, shares_of
from simulator.rounds.world import RoundsOptions
from tests.shared.schedulers.racked import racks_of

LINKS = TieredLinks(Link(0.0, 1e9), Link(0.0, 1e9), Link(0.0, 100.0))
ALWAYS = GangSteps(1e-9, 1e3, LINKS)
"""Communicates all the time."""
HALF = GangSteps(10.0, 1e3, LINKS)
"""Two GPUs compute for 10 s and communicate for 10 s at 100 bytes per second."""
BOTH = frozenset(("r1", "r2"))


def test_streams_that_are_always_sent_share_an_uplink_evenly() -> None:
    crossings = [Crossing(ALWAYS, 2, BOTH)] * 4
    assert shares_of(crossings, 100.0) == pytest.approx([25.0] * 4)


def test_a_gang_alone_has_the_uplink() -> None:
    assert shares_of([Crossing(HALF, 2, BOTH)], 100.0) == [100.0]
    assert shares_of([], 100.0) == []


def test_gangs_that_compute_leave_their_share_to_others() -> None:
    """A stream meets the other one for the part of a step in which that is sent."""
    crossings = [Crossing(HALF, 2, BOTH)] * 2
    first, second = shares_of(crossings, 100.0)
    assert first == second
    part = part_of(crossings[0], first)
    assert first == pytest.approx(100.0 / (1.0 + part), rel=2e-3)
    assert 50.0 < first < 100.0
    assert 2 * part * first <= 100.0, "an uplink sends no more than it can"


def test_only_gangs_of_the_same_racks_meet() -> None:
    apart = [Crossing(ALWAYS, 2, BOTH), Crossing(ALWAYS, 2, frozenset(("r3", "r4")))]
    assert shares_of(apart, 100.0) == pytest.approx([100.0, 100.0])
    chained = [*apart, Crossing(ALWAYS, 2, frozenset(("r2", "r3")))]
    assert shares_of(chained, 100.0) == pytest.approx([50.0] * 3)


def test_an_uplink_that_is_faster_than_the_link_changes_nothing() -> None:
    assert part_of(Crossing(HALF, 2, BOTH), 1e9) == 0.5


class Apart(Hooks):
    """Puts each gang on one GPU of either rack."""

    name: ClassVar[str] = "apart"
    source: ClassVar[str] = "a test"

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return {name: ((f"n1{name}", 1), (f"n2{name}", 1)) for name in allotments}


def test_gangs_over_the_same_racks_slow_each_other_down() -> None:
    """Ten steps, each of 10 s of computation and 10 s of communication where the gang is alone."""
    mean_s = []
    for count in (1, 2):
        jobs = [
            RoundsJob(f"{name}", 0.0, 2, LinkedWork(10.0, HALF)) for name in range(1, count + 1)
        ]
        nodes = racks_of((1, 1), (1, 1))
        world = RackedWorld(jobs, nodes, Apart(), RoundsOptions(60.0), 100.0)
        mean_s.append(world.run().mean_jct_s())
    assert mean_s[0] == 60.0 + 10 * 20.0
    assert mean_s[0] < mean_s[1] < 60.0 + 10 * 30.0
