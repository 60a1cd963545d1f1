"""Checkpoints that jobs report are recorded as far as they can be true, and not too often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.lifecycle.checkpoints import CHECKPOINT_GAP_MS
from shared.contracts.attempts import JobCheckpointed
from shared.contracts.base import Event
from tests.services.placement.core.lane import Lane, job, lane, written

PROGRESS: dict[str, object] = {"preemption": "ranked", "preemption_protection": "progress"}


def running(**settings: object) -> Lane:
    """A gang of two that has run for 1000 s."""
    fields: dict[str, object] = {**PROGRESS, **settings}
    pool = lane("a", gpus=8, **fields)
    pool.submit(job("x", 1, workers=2, simulated={"restart_s": 60.0}))
    if pool.job("x").phase == "waiting":
        pool.wake()
    pool.ready("x")
    pool.now += 1_000_000
    return pool


def worked(events: list[Event]) -> list[int]:
    return [event.worked_ms for event in events if isinstance(event, JobCheckpointed)]


def test_a_checkpoint_of_rank_0_is_recorded() -> None:
    pool = running()
    rank_0, rank_1 = pool.ids_of("x")
    [event] = pool.checkpoint(written(rank_1, "x", 800_000), written(rank_0, "x", 700_000, 9))
    assert event == JobCheckpointed(job_id="x", tenant="t", attempt=1, worked_ms=700_000, step=9)
    assert pool.job("x").checkpointed_ms == 700_000


def test_none_holds_more_than_the_start_has_worked() -> None:
    pool = running()
    assert worked(pool.checkpoint(written(pool.ids_of("x")[0], "x", 2**53 - 1))) == [1_000_000]
    again = running()
    again.job("x").resumes = True
    assert worked(again.checkpoint(written(again.ids_of("x")[0], "x", 10**9))) == [940_000]
    assert worked(again.checkpoint(written(again.ids_of("x")[0], "x", 60_000))) == []


@pytest.mark.parametrize("settings", [{"preemption_protection": "residency"}])
def test_other_pools_record_none(settings: dict[str, object]) -> None:
    pool = running(**settings)
    assert pool.checkpoint_now("x") == []


def test_a_report_of_another_start_or_of_no_job_is_ignored() -> None:
    pool = running()
    rank_0 = pool.ids_of("x")[0]
    assert pool.checkpoint(written("0/1/0/0", "x", 5), written(rank_0, "y", 5)) == []
    pool.cancel("x")
    assert pool.checkpoint_now("x") == [], "it stops"


def test_a_new_start_begins_without_a_checkpoint() -> None:
    pool = running()
    pool.checkpoint_now("x")
    pool.cancel("x")
    pool.stopped("x")
    pool.run(job("z", 1, workers=2))
    assert pool.job("z").checkpointed_ms == 0


@given(st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 10**7)), max_size=60))
def test_whatever_a_job_reports_it_is_recorded_in_order_seldom_and_never_ahead(
    reports: list[tuple[int, int]],
) -> None:
    pool = running()
    began = pool.job("x").started_at
    recorded = []
    for after_ms, ran_ms in reports:
        events = pool.checkpoint(written(pool.ids_of("x")[0], "x", ran_ms), after_ms=after_ms)
        assert all(ms <= pool.now - began for ms in worked(events))
        recorded += worked(events)
    assert recorded == sorted(recorded)
    gaps = [later - earlier for earlier, later in zip(recorded, recorded[1:], strict=False)]
    assert all(gap >= CHECKPOINT_GAP_MS for gap in gaps)


def test_a_thousand_reports_a_second_are_one_event() -> None:
    pool = running()
    rank_0 = pool.ids_of("x")[0]
    flood = (written(rank_0, "x", 900_000 + number) for number in range(1000))
    assert len(pool.checkpoint(*flood)) == 1
    assert pool.checkpoint(written(rank_0, "x", 901_000), after_ms=1000) == []


def test_checkpoints_delay_no_round() -> None:
    pool = running(settle_ms=100)
    names = [f"j{number}" for number in range(6)]
    pool.submit(*(job(name, 1) for name in names))
    pool.wake()
    pool.ready(*names)
    pool.now += 60_000
    pool.submit(job("waits", 8))
    due = pool.decider.next_wake(pool.state)
    for name in names:
        assert worked(pool.checkpoint_now(name, after_ms=1))
    assert pool.decider.next_wake(pool.state) == due
    pool.wake()
    assert not pool.state.changed
    pool.checkpoint_now("x", after_ms=1)
    assert pool.state.changed, "rank may stop it now"
