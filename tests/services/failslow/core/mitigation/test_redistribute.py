"""Micro-batches are divided exactly: no other division ends earlier."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.failslow.core.mitigation.redistribute import (
    makespan_s,
    redistribute,
    remaining_slowdown,
)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=4), st.integers(0, 6))
def test_no_division_ends_earlier(times_s: list[float], extra: int) -> None:
    microbatches = len(times_s) + extra
    counts = redistribute(times_s, microbatches)
    assert sum(counts) == microbatches
    assert min(counts) >= 1
    others = (
        division
        for division in product(range(1, extra + 2), repeat=len(times_s))
        if sum(division) == microbatches
    )
    assert makespan_s(times_s, counts) <= min(makespan_s(times_s, one) for one in others) + 1e-9


def test_a_slow_group_gets_fewer() -> None:
    assert redistribute([2.0, 1.0, 1.0], 15) == (3, 6, 6)


def test_the_remaining_slowdown_is_that_of_whole_micro_batches() -> None:
    assert remaining_slowdown([0.5, *[0.0] * 7], 16) == pytest.approx(17 / 16 - 1)
    assert remaining_slowdown([0.0] * 4, 2) == 0
    assert remaining_slowdown([0.3, 0.3], 1) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("times_s", "microbatches", "rule"),
    [
        ([1.0, 1.0], 1, "microbatches: 1 is below the 2 groups"),
        ([0.0], 1, "times_s: each is above 0"),
    ],
)
def test_bad_input_is_named(times_s: list[float], microbatches: int, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        redistribute(times_s, microbatches)
