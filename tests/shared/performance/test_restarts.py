from __future__ import annotations

from shared.performance.restarts import FREE, POLLUX, RestartCosts, age_factor


def test_a_larger_gang_restarts_longer() -> None:
    assert RestartCosts(20.0, 2.0).seconds(8) == 36.0
    assert (FREE.seconds(64), POLLUX.seconds(1), POLLUX.seconds(64)) == (0.0, 30.0, 30.0)


def test_an_old_job_with_few_restarts_counts_most_for_a_change() -> None:
    assert age_factor(0.0, 0) == age_factor(60.0, 2) == 0.0
    assert age_factor(30.0, 0) == 0.5
    assert age_factor(3600.0, 1) > age_factor(3600.0, 2) > age_factor(600.0, 2)
