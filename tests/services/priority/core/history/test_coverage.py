"""The share of jobs within their interval, and when it has drifted."""

from __future__ import annotations

import pytest

from services.priority.core.history.coverage import LEAST_SAMPLES, Coverage


def covered(jobs: int, outside_every: int) -> Coverage:
    coverage = Coverage()
    for job in range(jobs):
        coverage.add(job % outside_every != 0)
    return coverage


def test_few_jobs_say_nothing() -> None:
    coverage = covered(LEAST_SAMPLES - 1, 2)
    assert coverage.terms() == {} and coverage.find_change() is None


def test_a_share_near_the_claim_is_no_news() -> None:
    coverage = covered(2000, 5)
    assert coverage.terms()["interval.coverage"] == pytest.approx(0.8, abs=0.01)
    assert coverage.find_change() is None


def test_a_drift_is_news_until_it_is_noted_and_its_end_once_more() -> None:
    coverage = covered(2000, 2)
    assert coverage.find_change() is True
    coverage.drifted = True
    assert coverage.find_change() is None
    for job in range(3000):
        coverage.add(job % 5 != 0)
    assert coverage.find_change() is False
    coverage.drifted = False
    assert coverage.find_change() is None


def test_between_the_limits_nothing_changes() -> None:
    coverage = covered(4000, 8)
    assert 0.85 < coverage.share < 0.9
    assert coverage.find_change() is None
    coverage.drifted = True
    assert coverage.find_change() is None
