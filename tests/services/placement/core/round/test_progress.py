"""The scalars by which a job that rank stops makes progress."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.round.progress import (
    NEVER,
    least_work_ms,
    next_reported_stop_ms,
    next_stop_ms,
    price_of,
    scaled_price,
    stop_window_ms,
)

MS = st.integers(0, 10**8)


def test_the_window_is_at_least_a_twentieth_of_the_interval() -> None:
    assert stop_window_ms(60_000, 600_000) == 60_000
    assert stop_window_ms(60_000, 3_600_000) == 180_000


@pytest.mark.parametrize(("starts", "least_s"), [(1, 600), (6, 600), (7, 1200), (9, 4800)])
def test_protection_doubles_with_each_restart_beyond_the_cheap_ones(
    starts: int, least_s: int
) -> None:
    assert least_work_ms(starts, 300_000, 0, 600_000, 5, 600_000, 0) == least_s * 1000


def test_a_later_start_earns_what_the_last_stop_cost_in_whole_checkpoints() -> None:
    assert least_work_ms(1, 0, 900_000, 0, 5, 600_000, 0) == 0
    assert least_work_ms(2, 0, 900_000, 0, 5, 600_000, 0) == 1_200_000
    assert least_work_ms(2, 0, 0, 0, 5, 600_000, 0) == 600_000
    assert least_work_ms(2, 0, 900_000, 0, 5, 600_000, 30_000) == 930_000


@given(
    st.integers(2, 10**6),
    MS,
    MS,
    st.integers(0, 10**9),
    st.integers(0, 1000),
    st.integers(1, 10**7),
)
def test_a_stopped_later_start_keeps_more_than_the_last_stop_cost(
    starts: int, residency: int, debt: int, base: int, cheap: int, interval: int
) -> None:
    work = least_work_ms(starts, residency, debt, base, cheap, interval, 0)
    assert work % interval == 0 and work >= max(1, debt, residency) and work < 2**62


@given(MS, MS, MS, st.integers(1, 10**7), st.integers(0, 10**7))
def test_a_job_is_stopped_at_the_first_ms_at_which_the_rules_hold(
    now: int, safe: int, work_from: int, interval: int, window: int
) -> None:
    safe += work_from
    at = next_stop_ms(now, safe, work_from, interval, window)
    assert at >= max(now, safe) and (at - work_from) % interval <= window
    assert next_stop_ms(at, safe, work_from, interval, window) == at
    if at > max(now, safe):
        assert (at - 1 - work_from) % interval > window, "it could have been stopped before"
        assert (max(now, safe) - work_from) % interval > window


@given(MS, MS, MS, MS, st.integers(1, 10**7), st.integers(0, 10**6))
def test_a_job_that_reports_is_stopped_after_a_report_or_once_it_is_silent(
    now: int, safe: int, kept_from: int, reported: int, interval: int, window: int
) -> None:
    now += reported
    at = next_reported_stop_ms(now, safe, kept_from, reported, interval, window)
    assert at >= max(now, safe)
    after = at - reported
    if reported >= kept_from and after <= window:
        assert at == max(now, safe)
    else:
        assert after >= 2 * interval, "the next report is waited for"
        assert after % interval <= window
        assert reported + after // interval * interval >= kept_from, "and it keeps its least work"
    assert next_reported_stop_ms(at, safe, kept_from, reported, interval, window) == at
    assert at <= max(now, safe, kept_from, reported) + 2 * interval


@given(MS, MS, MS, MS, st.integers(0, 10**6))
def test_without_an_interval_only_a_report_lets_rank_stop_a_job(
    now: int, safe: int, kept_from: int, reported: int, window: int
) -> None:
    now += reported
    at = next_reported_stop_ms(now, safe, kept_from, reported, None, window)
    is_open = reported >= kept_from and max(now, safe) <= reported + window
    assert at == (max(now, safe) if is_open else NEVER)


def test_a_stop_that_costs_more_than_what_is_left_has_no_price() -> None:
    assert price_of(0.0, 100.0, 1.0) == 0.0
    assert price_of(50.0, 100.0, 1.0) == pytest.approx(math.log(2))
    assert price_of(50.0, 100.0, 2.0) == math.inf
    assert price_of(100.0, 100.0, 1.0) == math.inf


def test_a_stop_gets_dearer_as_the_budget_is_spent() -> None:
    assert [scaled_price(2.0, fill) for fill in (1.0, 0.5, 0.0)] == [2.0, 4.0, 100.0]
