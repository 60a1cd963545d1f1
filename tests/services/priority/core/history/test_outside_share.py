"""The share outside of the intervals follows the starts."""

from __future__ import annotations

import numpy as np
import pytest

from services.priority.core.history.outside_share import FARTHEST, STEP, OutsideShare


def test_at_first_a_tenth_lies_outside_on_each_side() -> None:
    assert OutsideShare().levels() == pytest.approx((0.1, 0.5, 0.9))


def test_a_start_outside_widens_as_much_as_four_inside_narrow() -> None:
    share = OutsideShare()
    share.judge(False)
    assert share.moved == pytest.approx(-0.8 * STEP)
    for _ in range(4):
        share.judge(True)
    assert share.moved == pytest.approx(0.0)


@pytest.mark.parametrize(("is_inside", "side"), [(True, 0.4509), (False, 0.0148)])
def test_a_burst_moves_the_share_to_a_bound_at_most(is_inside: bool, side: float) -> None:
    share = OutsideShare()
    for _ in range(10_000):
        share.judge(is_inside)
    assert abs(share.moved) == FARTHEST
    low, middle, high = share.levels()
    assert (low, middle, high) == pytest.approx((side, 0.5, 1.0 - side), abs=1e-3)


@pytest.mark.parametrize("spread", [0.9, 1.5])
def test_intervals_of_a_wrong_spread_come_to_hold_as_often_as_claimed(spread: float) -> None:
    """Truths are uniform; the quantiles are of a wider or narrower one about the same middle."""
    draw = np.random.default_rng(3)
    share, inside = OutsideShare(), []
    for _ in range(5_000):
        low, _, high = (0.5 + spread * (level - 0.5) for level in share.levels())
        inside.append(bool(low <= draw.random() <= high))
        share.judge(inside[-1])
    assert np.mean(inside[500:]) == pytest.approx(0.8, abs=0.02)
