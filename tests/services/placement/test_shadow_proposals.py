"""Shadows propose in a process of their own, on views of the scheduler or of the pool."""

from __future__ import annotations

import asyncio

import pytest

from services.placement.core.scheduled.request import propose_now, request_of
from services.placement.shadow_proposals import ShadowViews, make_shadow_proposals, next_ms, rest_s
from shared.contracts.proposals import ShadowReady
from tests.patience import PATIENCE_S
from tests.services.placement.core.lane import Lane, job, lane
from tests.services.placement.core.scheduled.pools import FAST, typed
from tests.services.placement.held_lane import HeldLane


def shadowed(**settings: object) -> Lane:
    pool = typed("fcfs", scheduler_shadow="gavel", **settings)
    pool.proposes = False
    pool.submit(job("one", 4, gpu_speeds={FAST: 2.0}))
    return pool


def note(views: ShadowViews, held: HeldLane) -> None:
    """Note the view of the open proposal, as once it was made."""
    state = held.state
    made = propose_now(state)
    assert made is not None and state.schedule.open is not None
    views.note(held, request_of(state), state.schedule.open.at, made)  # type: ignore[arg-type]


def test_a_view_is_kept_for_the_shadow_and_taken_once() -> None:
    held, views = HeldLane(shadowed()), ShadowViews()
    assert views.take(held, 0) is None  # type: ignore[arg-type]
    note(views, held)
    assert views.signals.of(0).is_set()
    seen = views.take(held, 0)  # type: ignore[arg-type]
    assert seen is not None and seen.beside == "fcfs"
    assert views.take(held, 0) is None  # type: ignore[arg-type]
    note(views, held)
    assert views.take(held, seen.viewed_at + 1) is None, "too early"  # type: ignore[arg-type]


def test_a_pool_without_a_shadow_keeps_no_view() -> None:
    pool = typed("fcfs")
    pool.proposes = False
    pool.submit(job("one", 4))
    held, views = HeldLane(pool), ShadowViews()
    note(views, held)
    assert not views.signals.of(0).is_set()
    assert rest_s(held, 0) is None  # type: ignore[arg-type]


def test_beside_the_ranked_queue_a_view_is_taken_once_a_round() -> None:
    pool = lane("a", gpus=4, scheduler_shadow="afs")
    held, views = HeldLane(pool), ShadowViews()
    assert rest_s(held, pool.now) == 360.0, "nothing runs or waits"  # type: ignore[arg-type]
    pool.run(job("one", 4))
    assert rest_s(held, pool.now + 2000) == 2.0  # type: ignore[arg-type]
    assert views.take(held, pool.now + 1) is None  # type: ignore[arg-type]
    seen = views.take(held, pool.now)  # type: ignore[arg-type]
    assert seen is not None and seen.beside == ""
    last = ("afs", pool.now + 360_000)
    assert next_ms(pool.state, last) == last[1], "it may still be on its way to the ledger"
    assert next_ms(pool.state, ("gavel", last[1])) == 0, "another shadow waits for none"


@pytest.mark.process
async def test_a_shadow_proposes_on_the_view_and_its_comparison_is_offered() -> None:
    pool = shadowed()
    held, views = HeldLane(pool), ShadowViews()
    task = asyncio.create_task(make_shadow_proposals(held, views))  # type: ignore[arg-type]
    try:
        note(views, held)
        async with asyncio.timeout(PATIENCE_S):
            answer = await held.offered.get()
    finally:
        task.cancel()
        await asyncio.wait((task,))
    assert isinstance(answer, ShadowReady)
    assert (answer.scheduler, answer.beside, answer.refused) == ("gavel", "fcfs", "")
    assert (answer.compared.gpus, answer.compared.shadow_gpus) == (4, 4)
    assert answer.propose_ms > 0
