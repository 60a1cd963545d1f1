"""Agreement of two orders."""

from __future__ import annotations

import pytest

from services.priority.core.ranking.shadows import kendall_tau


def test_agreement_is_kendalls_tau_over_the_first_of_either() -> None:
    assert kendall_tau([1, 2, 3], [1, 2, 3]) == 1.0
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1.0
    assert kendall_tau([5], [5]) == 1.0
    assert kendall_tau([1, 2, 3, 4], [2, 1, 3, 4]) == pytest.approx(4 / 6, abs=1e-6)


def test_jobs_that_an_order_does_not_name_are_equal_behind_the_others() -> None:
    assert kendall_tau([1, 2], [3, 4], most=2) == pytest.approx(-4 / 6, abs=1e-6)
    assert kendall_tau([1, 2, 3], [1]) == pytest.approx(2 / 3, abs=1e-6)


def test_jobs_beyond_the_first_are_not_compared() -> None:
    assert kendall_tau([1, 2, 3, 4], [1, 2, 4, 3], most=2) == 1.0
