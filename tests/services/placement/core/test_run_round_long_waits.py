"""Reservations for jobs that waited too long: how long they last, and where the next one is."""

from __future__ import annotations

from services.placement.core.round.view import view_of
from shared.contracts.placement import JobHeld
from tests.services.placement.core.lane import Lane, job, lane

WAIT_MS = 300
HOLD_MS = 86_400
"""A day on a clock that runs a thousand times as fast."""


def guarded(*nodes: str) -> Lane:
    return lane(*nodes, gpus=8, time_scale=1000.0, reserve_after_s=300.0, guard_predictions=True)


def detail_of(pool: Lane, name: str) -> dict[str, float | str]:
    """Return the details of the job's last hold."""
    held = [fact.event for fact in pool.facts if isinstance(fact.event, JobHeld)]
    return dict([event for event in held if event.job_id == name][-1].detail)


def overdue(*nodes: str, gpus: int = 8, workers: int = 1) -> tuple[Lane, int]:
    """Return a pool with `x` running and `big` overdue, and since when GPUs are reserved for it."""
    pool = guarded(*nodes)
    pool.run(job("x", 1))
    pool.submit(job("big", gpus, workers=workers))
    pool.submit(job("first", 1), after_ms=WAIT_MS)
    return pool, pool.now


def test_a_reservation_that_a_job_outlasts_lapses_and_comes_again() -> None:
    pool, since = overdue("n1")
    assert pool.job("first").hold_reason == "behind_reservation"
    pool.submit(job("second", 1), after_ms=200)
    assert detail_of(pool, "big")["reserved_until"] == since + HOLD_MS
    assert pool.decider.next_wake(pool.state) == since + HOLD_MS, "no other input is needed"
    pool.feed(after_ms=since + HOLD_MS - pool.now)
    assert {pool.job(name).phase for name in ("first", "second")} == {"placed"}
    pool.submit(job("third", 1), after_ms=1000)
    assert pool.job("third").phase == "placed"
    detail = detail_of(pool, "big")
    assert detail["outlasted_by"] == "x"
    again = since + 3 * HOLD_MS
    assert detail["not_reserved_before"] == again
    pool.submit(job("fourth", 1), after_ms=again - 1 - pool.now)
    assert pool.job("fourth").phase == "placed"
    pool.submit(job("fifth", 1), after_ms=200)
    assert pool.job("fifth").hold_reason == "behind_reservation"
    view = view_of(pool.state, pool.now + 1)
    assert view.overdue.job_id == "big"
    waited = pool.now - pool.job("big").since
    assert view.overdue.lapses_at_ms == pool.now + waited, "it has waited longer than a day"


def test_the_next_reservation_avoids_the_nodes_of_jobs_that_outlasted_the_last_one() -> None:
    """`x` holds one GPU of the roomier node; the jobs of the other have begun since."""
    pool = guarded("n1", "n2")
    pool.run(job("x", 1), job("y", 8))
    (kept,), (other,) = pool.nodes_of("x"), pool.nodes_of("y")
    pool.submit(job("big", 8))
    pool.submit(job("small", 1), after_ms=WAIT_MS)
    since = pool.now
    assert pool.job("small").hold_reason == "behind_reservation", f"{kept} is reserved"
    pool.submit(job("z", 8, priority_class="high"), after_ms=200)
    pool.exited("y", after_ms=200)
    assert pool.nodes_of("z") == (other,)
    pool.ready("z")
    pool.feed(after_ms=since + HOLD_MS - pool.now)
    assert pool.nodes_of("small") == (kept,), "the reservation has lapsed"
    pool.submit(job("next", 1), after_ms=2 * HOLD_MS)
    assert pool.nodes_of("next") == (kept,), f"{other} is reserved"
    pool.exited("z", after_ms=200)
    assert pool.nodes_of("big") == (other,)


def test_another_overdue_job_has_its_turn_after_a_lapse() -> None:
    pool, since = overdue("n1", "n2", workers=2)
    pool.run(job("y", 8))
    pool.submit(job("other", 8))
    pool.feed(after_ms=since + HOLD_MS - pool.now)
    assert view_of(pool.state, pool.now).overdue.job_id == ""
    assert view_of(pool.state, pool.now + HOLD_MS - 1).overdue.job_id == "", "none for as long"
    assert view_of(pool.state, pool.now + HOLD_MS).overdue.job_id == "other"
    assert view_of(pool.state, pool.now + 2 * HOLD_MS).overdue.job_id == "big"


def test_a_pool_without_the_guard_keeps_its_reservation() -> None:
    pool = lane("n1", gpus=8, time_scale=1000.0, reserve_after_s=300.0)
    pool.run(job("x", 1))
    pool.submit(job("big", 8))
    pool.submit(job("first", 1), after_ms=10 * HOLD_MS)
    pool.submit(job("second", 1), after_ms=10 * HOLD_MS)
    assert pool.job("second").hold_reason == "behind_reservation"


def test_a_pool_that_switches_the_guard_off_forgets_what_lapsed() -> None:
    pool, since = overdue("n1")
    pool.feed(after_ms=since + HOLD_MS - pool.now)
    assert pool.job("big").unreserved_until_ms
    pool.pool(time_scale=1000.0, reserve_after_s=300.0, guard_predictions=False)
    pool.wake()
    assert not pool.job("big").unreserved_until_ms and not pool.state.lapsed_from_ms
    assert view_of(pool.state, pool.now).overdue.job_id == "big"
