"""Conformance tests T1 to T3 of the GFS card, and the loop against a plant that answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.admission.core.spot.forecast import HOURS, LEADS_OF_HOUR, DemandForecast
from services.admission.core.spot.guarantees import GuaranteeLog
from services.admission.core.spot.quota import (
    QuotaFactor,
    SpotQuotaSettings,
    adjusted,
    has_room,
    quota_gpus,
)

SETTINGS = SpotQuotaSettings()
TICK_S = 1800.0
futures = st.lists(
    st.lists(st.floats(0, 5000), min_size=16, max_size=16), min_size=2, max_size=6
).map(lambda rows: DemandForecast(np.array(rows)[:, None, :]))
factors = st.floats(SETTINGS.least_factor, SETTINGS.most_factor)


@given(futures, factors, st.integers(1, HOURS), st.integers(0, 4000))
def test_a_quota_is_at_most_what_the_upper_quantile_leaves(
    forecast: DemandForecast, value: float, hours: int, capacity: int
) -> None:
    upper = forecast.upper_gpus(QuotaFactor(value).level(SETTINGS)).tolist()
    quota = quota_gpus(capacity, upper, hours, value)
    assert 0 <= quota <= max(0.0, capacity - max(upper[:hours]))
    assert quota <= capacity


@given(futures, st.floats(0.1, 0.8), factors, factors)
def test_it_falls_with_the_quantile_and_the_hours_and_rises_with_the_factor(
    forecast: DemandForecast, level: float, one: float, other: float
) -> None:
    """T1."""
    low, high = (forecast.upper_gpus(own).tolist() for own in (level, level + 0.2))
    assert quota_gpus(3000, high, 1, 1.0) <= quota_gpus(3000, low, 1, 1.0)
    by_hours = [quota_gpus(3000, low, hours, 1.0) for hours in range(1, HOURS + 1)]
    assert by_hours == sorted(by_hours, reverse=True)
    smaller, larger = sorted((one, other))
    quotas = [
        quota_gpus(3000, forecast.upper_gpus(QuotaFactor(own).level(SETTINGS)).tolist(), 1, own)
        for own in (smaller, larger)
    ]
    assert quotas[0] <= quotas[1] + 1e-6


@pytest.mark.parametrize("factor", [0.1, 0.5, 1.0])
def test_of_certain_demand_it_is_the_factor_of_what_is_left(factor: float) -> None:
    """T2."""
    certain = DemandForecast(np.full((5, 1, HOURS * LEADS_OF_HOUR), 1234.0))
    quota = quota_gpus(2296, certain.upper_gpus(0.9).tolist(), 1, factor)
    assert quota == pytest.approx(factor * (2296 - 1234))
    assert quota_gpus(1000, [1234.0], 1, factor) == 0


def log_of(failed: int, kept: int, at_s: float) -> GuaranteeLog:
    log = GuaranteeLog(SETTINGS.window_s)
    for number in range(failed + kept):
        log.note(at_s, 1, kept=number >= failed)
    return log


def test_many_failures_lower_the_factor_and_starving_raises_it() -> None:
    """T3; the released growth for one failure in a hundred is 1.5 - 10, which is negative."""
    now_s = 14_400.0
    start = QuotaFactor()
    assert adjusted(start, log_of(30, 70, now_s), 0, SETTINGS, now_s).value == pytest.approx(1 / 3)
    raised = adjusted(start, log_of(1, 99, now_s), 4000, SETTINGS, now_s)
    assert raised.value == pytest.approx(1.4)
    assert raised.level(SETTINGS) == pytest.approx(0.86)
    assert adjusted(start, log_of(1, 99, now_s), 3000, SETTINGS, now_s) == start
    assert adjusted(start, log_of(10, 90, now_s), 4000, SETTINGS, now_s) == start
    assert adjusted(start, log_of(3, 3, now_s), 4000, SETTINGS, now_s) == start


def test_a_change_is_judged_by_what_ended_after_it() -> None:
    changed = QuotaFactor(0.5, 10_000.0)
    log = log_of(50, 50, 9_900.0)
    assert adjusted(changed, log, 0, SETTINGS, 14_000.0) == changed
    assert adjusted(changed, log, 0, SETTINGS, 13_000.0) == changed
    assert adjusted(QuotaFactor(0.5), log, 0, SETTINGS, 13_000.0).value < 0.5


@pytest.mark.parametrize(("failed", "waits_s"), [(100, 0.0), (0, 1e6)])
def test_the_factor_is_bounded(failed: int, waits_s: float) -> None:
    factor = QuotaFactor()
    for hour in range(100):
        now_s = 3600.0 * hour
        factor = adjusted(factor, log_of(failed, 100 - failed, now_s), waits_s, SETTINGS, now_s)
    bound = SETTINGS.least_factor if failed else SETTINGS.most_factor
    assert factor.value == pytest.approx(bound)
    assert factor.level(SETTINGS) == pytest.approx(0.9 if failed else SETTINGS.least_level)


@settings(max_examples=20)
@given(st.floats(0.02, 2.0), st.floats(0.5, 3.0))
def test_the_loop_converges(slope: float, power: float) -> None:
    """Where failures grow with the factor, it stops changing, at a rate between the bounds.

    Unless the factor is at one of its bounds. Fifteen periods end in each half hour.
    """
    factor, log = QuotaFactor(), GuaranteeLog(SETTINGS.window_s)
    credit, last_change_s = 0.0, 0.0

    def rate() -> float:
        return min(1.0, slope * math.pow(factor.value / SETTINGS.most_factor, power))

    ticks = 24 * 2 * 10
    for tick in range(ticks):
        now_s = tick * TICK_S
        for _ in range(15):
            credit += rate()
            failed = credit >= 1
            credit -= failed
            log.note(now_s, 1, kept=not failed)
        before = factor
        factor = adjusted(factor, log, 7200.0, SETTINGS, now_s)
        if factor != before:
            last_change_s = now_s
    assert last_change_s < ticks * TICK_S / 2
    at_bound = factor.value in (SETTINGS.least_factor, SETTINGS.most_factor)
    in_targets = rate() / SETTINGS.target_rate
    assert at_bound or 0.45 <= in_targets <= 1.55


def test_a_gang_has_room_as_a_whole() -> None:
    assert has_room(100.0, 60, 40)
    assert not has_room(100.0, 60, 41)
