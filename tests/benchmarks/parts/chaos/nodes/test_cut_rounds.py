"""Cuts follow from their seed, in every direction and length, and are measured by the lease."""

from __future__ import annotations

from collections import Counter
from itertools import product

from benchmarks.parts.chaos.nodes.cut_rounds import (
    CUTS,
    PHASE_S,
    SHARES,
    CutOff,
    CutRound,
    directions_of,
    plan_cuts,
)
from benchmarks.parts.chaos.nodes.ticks import GpuUse

BEYOND = CutRound(1, "both", 1.1, 0.5)
CUT_OFF = CutOff(BEYOND, "n1", 5_000, 15_000, is_fenced=True, recovery_s=1.0, load_1m=2.0)


def test_a_seed_makes_the_same_rounds() -> None:
    assert plan_cuts(3, 50) == plan_cuts(3, 50) != plan_cuts(4, 50)


def test_every_cut_of_every_length_comes_equally_often() -> None:
    planned = plan_cuts(1, 96)
    assert Counter((one.cut, one.share) for one in planned) == dict.fromkeys(
        product(CUTS, SHARES), 8
    )
    assert [one.number for one in planned] == list(range(1, 97))
    assert all(0 <= one.phase_s <= PHASE_S for one in planned)


def test_a_hundred_rounds_have_their_number() -> None:
    assert len(plan_cuts(1, 100)) == 100 and plan_cuts(1, 0) == []


def test_half_of_the_lengths_are_beyond_the_lease() -> None:
    assert [CutRound(1, "both", share, 0.0).is_beyond_lease for share in SHARES] == [
        False,
        False,
        True,
        True,
    ]
    assert str(BEYOND) == "round 1: both for 1.1 x stop_after_s"


def test_both_directions_are_two() -> None:
    assert directions_of("both") == ("from_host", "to_host")
    assert [directions_of(cut) for cut in CUTS[:2]] == [("from_host",), ("to_host",)]


def use(first_ms: int, last_ms: int, node: str = "n1") -> GpuUse:
    return GpuUse(node, 0, "a", 1, 0, first_ms, last_ms)


def test_the_margin_is_that_of_the_last_worker_of_the_node() -> None:
    uses = [use(1_000, 9_000), use(4_000, 14_000), use(1_000, 99_000, node="n2")]
    assert CUT_OFF.margin_s(uses) == 1.0
    assert CUT_OFF.margin_s([use(1_000, 16_000)]) == -1.0


def test_workers_before_the_cut_and_after_the_lease_have_no_margin() -> None:
    assert CUT_OFF.margin_s([use(1_000, 4_000), use(16_000, 20_000)]) is None
