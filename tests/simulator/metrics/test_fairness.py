"""Fairness by hand, and the fluid share against the recursion that it unrolls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.metrics.fairness import alone_s, fairness, jain
from tests.simulator.metrics.test_measures import outcome


def test_jain_is_one_when_all_are_alike_and_a_share_when_one_has_all() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain(np.array([9.0, 0.0, 0.0])) == pytest.approx(1 / 3)
    assert jain(np.zeros(2)) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_alone_follows_the_recursion_job_by_job(seed: int) -> None:
    draw = np.random.default_rng(seed)
    submit, work = np.sort(draw.uniform(0, 1000, 60)), draw.exponential(40, 60)
    gpus, share = draw.choice([1.0, 2.0, 8.0], 60), 3.5
    through, expected = 0.0, []
    for at, run, n in zip(submit, work, gpus, strict=True):
        through = max(at, through) + run * n / share
        expected.append(max(through - at, run))
    assert alone_s(submit, work, gpus, share) == pytest.approx(np.array(expected))


def test_service_is_fair_when_it_follows_the_weights() -> None:
    """In the whole run tenant 0 is served 100 GPU-seconds and tenant 1 440."""
    whole = replace(outcome(), window_s=(0.0, 1000.0))
    assert fairness(whole).jain == pytest.approx(540**2 / (2 * (100**2 + 440**2)))
    assert fairness(whole, {0: 1.0, 1: 4.4}).jain == pytest.approx(1.0)


def test_a_tenant_that_was_never_in_the_way_has_a_rho_of_one() -> None:
    """The window's only job of tenant 1 waited 160 s and lost 30: 270 s instead of 220 s alone."""
    result = fairness(outcome())
    alone = max(110 * 4 / 2, 110)
    assert result.rho_worst == pytest.approx(max(270 / alone, 400 / 5))
    assert result.rho_mean == pytest.approx((270 / alone + 400 / 5) / 2)
