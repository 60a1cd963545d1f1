"""Ended workers' files go, the oldest first, as soon as one limit is passed."""

from __future__ import annotations

from dataclasses import replace

from berth_agent.core.retention import DAY_S, UNREAD_S, EndedWorker, Retention

NOW_S = 100 * DAY_S
LIMITS = Retention(count=10, size_gib=100, age_days=30, free_gib=0)
WORKERS = [EndedWorker(str(days), NOW_S - days * DAY_S, 10) for days in (1, 3, 2)]


def removed(limits: Retention, workers: list[EndedWorker] = WORKERS, free_gib: float = 5) -> str:
    return " ".join(worker.folder for worker in limits.expired(workers, free_gib, NOW_S))


def test_each_limit_alone_removes_the_oldest() -> None:
    assert removed(LIMITS) == ""
    assert removed(replace(LIMITS, count=1)) == "3 2"
    assert removed(replace(LIMITS, size_gib=25)) == "3"
    assert removed(replace(LIMITS, age_days=1.5)) == "3 2"
    assert removed(replace(LIMITS, free_gib=6)) == "3"
    assert removed(replace(LIMITS, free_gib=16)) == "3 2"


def test_a_worker_that_has_just_ended_stays_until_its_output_is_sent() -> None:
    young = EndedWorker("young", NOW_S - UNREAD_S + 1, 1000)
    assert removed(replace(LIMITS, count=0), [*WORKERS, young]) == "3 2 1"
    assert removed(replace(LIMITS, count=0), [replace(young, ended_s=NOW_S - UNREAD_S)]) == "young"


def test_what_ended_while_the_clock_was_ahead_goes_first() -> None:
    ahead = [EndedWorker(f"+{days}", NOW_S + days * DAY_S, 10) for days in (365, 366)]
    assert removed(LIMITS, [*WORKERS, *ahead]) == ""
    assert removed(replace(LIMITS, count=4), [*WORKERS, *ahead]) == "+365"
    young = EndedWorker("young", NOW_S - 1, 10)
    assert removed(replace(LIMITS, free_gib=16), [*WORKERS, *ahead, young]) == "+365 +366"
    assert removed(replace(LIMITS, count=0), [*WORKERS, *ahead, young]) == "+365 +366 3 2 1"
