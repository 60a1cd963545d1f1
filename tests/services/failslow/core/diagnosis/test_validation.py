"""Each link of a ring is measured once, in a bounded number of rounds."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest

from services.failslow.core.diagnosis.layout import Group, Layout
from services.failslow.core.diagnosis.validation import rounds_for
from tests.services.failslow.core.diagnosis.gangs import random_layout


@pytest.mark.parametrize(("ranks", "rounds"), [(2, 2), (3, 3), (4, 2), (7, 3), (64, 2), (65, 3)])
def test_the_rounds_do_not_grow_with_the_ring(ranks: int, rounds: int) -> None:
    group = Group("dp", 0, tuple(range(ranks)))
    measured = rounds_for([group])
    assert len(measured) == rounds
    pairs = [pair for one in measured for pair in one.pairs]
    assert sorted(pairs) == [(rank, (rank + 1) % ranks) for rank in range(ranks)]


@pytest.mark.parametrize("seed", range(20))
def test_no_rank_is_in_two_pairs_of_a_round(seed: int) -> None:
    groups = random_layout(Random(seed)).groups()
    rounds = rounds_for(groups)
    assert len(rounds) <= 9
    for one in rounds:
        ranks = list(chain.from_iterable(one.pairs))
        assert len(set(ranks)) == len(ranks)


def test_groups_of_several_axes_are_measured_one_axis_after_another() -> None:
    assert len(rounds_for(Layout(2, 4, 3).groups())) == 2 + 2 + 3
    assert rounds_for([]) == ()
