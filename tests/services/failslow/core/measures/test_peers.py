"""The comparison of the workers of one gang."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.failslow.core.measures.peers import Comparison, Thresholds, judge

LIMITS = Thresholds()
SECONDS = st.floats(0.01, 1e4)
GANG = st.lists(st.lists(SECONDS, min_size=3, max_size=8), min_size=2, max_size=12)


@given(st.lists(SECONDS, min_size=2, max_size=20))
def test_the_fastest_is_never_apart_and_normal_is_among_the_quiet(values: list[float]) -> None:
    comparison = Comparison.of({rank: [value] for rank, value in enumerate(values)}, 1, LIMITS)
    quiet = [value for rank, value in enumerate(values) if rank not in comparison.apart]
    assert min(values) in quiet
    assert comparison.normal_s == median(quiet)


@given(GANG, st.randoms(use_true_random=False))
def test_the_numbering_of_ranks_does_not_matter(
    gang: list[list[float]], chance: random.Random
) -> None:
    order = list(range(len(gang)))
    chance.shuffle(order)
    one = judge(dict(enumerate(gang)), LIMITS)
    other = judge({new: gang[old] for new, old in enumerate(order)}, LIMITS)
    assert {order[rank]: slow for rank, slow in other.slow.items()} == one.slow
    assert sorted(order[rank] for rank in other.healthy) == list(one.healthy)


@given(GANG)
def test_slow_and_healthy_exclude_each_other(gang: list[list[float]]) -> None:
    verdict = judge(dict(enumerate(gang)), LIMITS)
    assert not set(verdict.slow) & set(verdict.healthy)
    for slow in verdict.slow.values():
        assert slow.slowdown >= LIMITS.slowdown
        assert slow.score >= 0.99 * LIMITS.score


@given(st.lists(st.floats(0.1, 100), min_size=3, max_size=8), st.integers(2, 16))
def test_a_gang_that_slows_together_is_never_suspected(shared: list[float], workers: int) -> None:
    verdict = judge(dict.fromkeys(range(workers), shared), LIMITS)
    assert verdict.slow == {}
    assert verdict.healthy == tuple(range(workers))


@pytest.mark.parametrize(("slow", "workers"), [(1, 3), (2, 5), (4, 10), (15, 32)])
def test_a_slow_minority_does_not_hide_itself(slow: int, workers: int) -> None:
    gang = {rank: [1.5 if rank < slow else 1.0] * 3 for rank in range(workers)}
    assert sorted(judge(gang, LIMITS).slow) == list(range(slow))


def test_without_a_quiet_majority_no_worker_is_suspected() -> None:
    gang = {rank: [1.5 if rank < 4 else 1.0] * 3 for rank in range(8)}
    verdict = judge(gang, LIMITS)
    assert (verdict.slow, verdict.healthy) == ({}, ())


def test_too_few_reports_give_no_verdict() -> None:
    verdict = judge({0: [1.0] * 2, 1: [9.0] * 8, 2: [1.0] * 2}, LIMITS)
    assert (verdict.slow, verdict.healthy) == ({}, ())


def test_one_quick_report_breaks_the_row() -> None:
    gang = {0: [2.0, 1.0, 2.0], 1: [1.0] * 3, 2: [1.0] * 3}
    assert judge(gang, LIMITS).slow == {}


def test_in_a_pair_only_a_wide_gap_counts() -> None:
    assert judge({0: [1.4] * 3, 1: [1.0] * 3}, LIMITS).slow == {}
    assert list(judge({0: [1.6] * 3, 1: [1.0] * 3}, LIMITS).slow) == [0]


def test_workers_that_differ_anyway_need_a_wider_gap() -> None:
    roles = [0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15]
    assert judge({rank: [value] * 3 for rank, value in enumerate(roles)}, LIMITS).slow == {}
    assert list(judge({r: [v] * 3 for r, v in enumerate([*roles, 1.5])}, LIMITS).slow) == [7]


def test_all_reports_in_a_row_are_counted() -> None:
    gang = {0: [1.0, *[2.0] * 5], 1: [1.0] * 6, 2: [1.0] * 4}
    assert judge(gang, LIMITS).slow[0].reports == 5


def alarms(workers: int, noise: float, rounds: int, seed: int) -> int:
    """Fresh suspicions in one gang of equal workers whose report medians scatter by `noise`."""
    chance = random.Random(seed)
    windows: dict[int, list[float]] = {rank: [] for rank in range(workers)}
    known: set[int] = set()
    count = 0
    for _ in range(rounds):
        for window in windows.values():
            window.append(chance.lognormvariate(0.0, noise))
            del window[:-8]
        slow = set(judge(windows, LIMITS).slow)
        count += len(slow - known)
        known = slow
    return count


@pytest.mark.parametrize("workers", [2, 4, 8, 32])
def test_equal_workers_are_not_suspected(
    workers: int, record_property: Callable[[str, object], None]
) -> None:
    """At 5 % scatter of report medians none, at 10 % at most 5 in 10,000 worker-reports."""
    rounds = 6_000 // workers
    assert alarms(workers, 0.05, rounds, seed=workers) == 0
    rate = alarms(workers, 0.10, rounds, seed=workers) / (workers * rounds)
    record_property("false_alarms_per_worker_report_at_10_percent", rate)
    assert rate <= 5e-4


@settings(max_examples=50)
@given(st.integers(3, 16), st.floats(1.35, 5), st.integers(0, 10**6))
def test_a_slow_worker_among_noisy_ones_is_suspected(
    workers: int, factor: float, seed: int
) -> None:
    chance = random.Random(seed)
    gang = {
        rank: [(factor if rank == 0 else 1) * chance.uniform(0.98, 1.02) for _ in range(3)]
        for rank in range(workers)
    }
    assert list(judge(gang, LIMITS).slow) == [0]
