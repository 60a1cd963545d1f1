from __future__ import annotations

import numpy as np
import pytest

from shared.schedulers.time_shares import (
    Floats,
    TimeShares,
    equal_shares,
    isolated_rates,
    proportional_rates,
)


def test_jobs_of_opposite_affinity_get_their_types() -> None:
    rates = np.array([[4.0, 1.0], [1.0, 4.0]])
    equal = proportional_rates(rates, np.array([1.0, 1.0]))
    shares = TimeShares(rates, np.ones(2), np.ones(2)).max_min(1.0 / equal)
    assert shares.round(6).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_least_share_is_as_large_as_it_can_be() -> None:
    rates = np.array([[2.0], [2.0], [2.0]])
    shares = TimeShares(rates, np.array([1.0, 1.0, 2.0]), np.array([2.0])).max_min(np.ones(3))
    assert shares.ravel().tolist() == pytest.approx([0.5, 0.5, 0.5])


def test_water_filling_raises_those_above_the_least_alike() -> None:
    # The first job runs on the slow type alone; the other two share the fast one.
    rates = np.array([[1.0, 0.0], [0.0, 4.0], [0.0, 4.0]])
    program = TimeShares(rates, np.ones(3), np.array([1.0, 1.0]))
    levels = (rates * program.max_min(np.ones(3), fillings=3)).sum(axis=1)
    assert levels.tolist() == pytest.approx([1.0, 2.0, 2.0])


def test_a_job_without_rates_keeps_none_of_the_others_down() -> None:
    rates = np.array([[0.0, 0.0], [1.0, 2.0]])
    shares = TimeShares(rates, np.ones(2), np.ones(2)).max_min(np.ones(2))
    assert shares.round(6).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_equal_parts_are_those_of_the_cluster() -> None:
    rates = np.array([[4.0, 1.0], [4.0, 1.0]])
    capacity = np.array([1.0, 3.0])
    assert proportional_rates(rates, capacity).tolist() == [1.75, 1.75]
    gangs = np.array([1.0, 4.0])
    assert isolated_rates(rates, gangs, capacity).tolist() == pytest.approx(
        [(4 * 0.5 + 1 * 1.5) / 2.0, 4 * 0.125 + 1 * 0.375]
    )


def reached(rates: Floats, scale: Floats, shares: Floats) -> float:
    """Return the least level, with a millionth of its time for each job."""
    return float(((rates * (shares + 1e-6)).sum(axis=1) * scale).min())


@pytest.mark.parametrize("decades", [3, 9])
def test_levels_far_apart_are_solved_too(decades: int) -> None:
    """Makespans of jobs whose rests differ by many orders: the plain program is abnormal, or
    infeasible once its level is fixed, and all shares would be 0.
    """
    for seed in range(12):
        draws = np.random.default_rng(seed)
        rates = draws.random((40, 2)) * 10 ** draws.uniform(-1, 1, (40, 1))
        gangs = draws.integers(1, 9, 40).astype(float)
        capacity = draws.integers(1, 64, 2).astype(float)
        scale = 10 ** -draws.uniform(0, decades, 40)
        shares = TimeShares(rates, gangs, capacity).max_min(scale)
        assert (shares.sum(axis=1) <= 1 + 1e-6).all()
        assert (gangs @ shares <= capacity * (1 + 1e-6)).all()
        equal = equal_shares(rates, gangs, capacity)
        assert reached(rates, scale, shares) >= reached(rates, scale, equal) * (1 - 1e-6)


def test_equal_shares_are_within_the_gpus_and_the_time_of_each_job() -> None:
    rates = np.array([[1.0, 2.0], [0.0, 1.0]])
    shares = equal_shares(rates, np.array([1.0, 1.0]), np.array([8.0, 8.0]))
    assert shares.tolist() == [[0.5, 0.5], [0.0, 0.5]]
