from __future__ import annotations

import pytest

from services.placement.core.pool.state import Pool
from services.placement.core.round.timing import SETTLE_MOST, due_at, settle, settled_at
from tests.services.placement.core.lane import job, lane


def changed(first: int, last: int, again_at: int | None = None) -> Pool:
    pool = Pool(0)
    pool.changed, pool.first_change, pool.last_change = True, first, last
    pool.again_at = again_at
    return pool


def test_changes_push_a_round_off_until_they_settle_but_not_for_ever() -> None:
    assert settle(0, 30, 10) == 40
    assert settle(0, 10_000, 10) == SETTLE_MOST * 10


@pytest.mark.parametrize(("again_at", "settled"), [(None, 60), (55, 65), (90, 60), (20, 60)])
def test_a_moment_that_a_round_waits_for_is_a_change_as_well(
    again_at: int | None, settled: int
) -> None:
    assert settled_at(changed(40, 50, again_at), 10) == settled


def test_without_a_change_only_the_moment_asked_for_brings_a_round() -> None:
    pool = Pool(0)
    assert settled_at(pool, 10) is None
    pool.again_at = 70
    assert settled_at(pool, 10) == 80


def test_a_pool_without_settings_or_jobs_has_no_round() -> None:
    assert due_at(Pool(0)) is None
    assert due_at(lane("a").state) is None


def test_a_contended_pool_has_one_round_per_period() -> None:
    pool = lane("a", round_ms=1000, settle_ms=0)
    pool.submit(job("big", 16))
    pool.submit(job("other", 16), after_ms=10)
    assert due_at(pool.state) == pool.state.round_at + 1000
