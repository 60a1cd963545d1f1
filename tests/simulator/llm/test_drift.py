"""Gaps grow while topics drift, and updates close a part of them."""

from __future__ import annotations

import pytest

from simulator.llm.drift import KEPT, UserDrift, draw_drift


def test_a_gap_grows_at_the_rate_of_its_time() -> None:
    drift = UserDrift([(0.0, 0.0), (10.0, 0.1), (12.0, 0.0)])
    assert drift.advance(10) == 0
    assert drift.advance(11) == pytest.approx(0.1)
    assert drift.advance(100) == pytest.approx(0.2)
    assert drift.area == pytest.approx(0.2 * 2 / 2 + 0.2 * 88)


def test_a_gap_is_at_most_one() -> None:
    assert UserDrift([(0.0, 1.0)]).advance(50) == 1


def test_an_update_closes_a_part_and_counts_the_time_since_the_last() -> None:
    drift = UserDrift([(0.0, 0.01)])
    drift.update(10)
    assert drift.gap == pytest.approx(0.1 * KEPT)
    drift.end(25)
    assert (drift.updates, drift.worst_stale_s, drift.stale_s(25)) == (1, 15, 15)


def test_users_drift_in_ways_of_their_own() -> None:
    one, other = (draw_drift(user, 600, 0.01, 0) for user in "ab")
    assert one.rates != other.rates
    assert draw_drift("a", 600, 0.01, 0).rates == one.rates
