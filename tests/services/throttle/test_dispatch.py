"""A stop of the throttle, while its proxy and the lane still run: nothing started is left open."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.throttle import dispatch
from shared.contracts.endpoints import Upstream
from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    RequestsEnded,
)
from shared.ledger.decider import Fact
from shared.ledger.errors import Busy
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import CHAT, LONG, engine, post, serving
from tests.services.throttle.shell import ThrottleStack, chat

PLACES = 2


def small(tmp_path: Path, url: str) -> ThrottleStack:
    """Return a stack whose engine has few places."""
    stack = ThrottleStack(tmp_path, url)
    engine_of = Upstream(name="e0", url=url, max_requests=PLACES)
    stack.endpoint = stack.endpoint.model_copy(update={"upstreams": (engine_of,)})
    stack.access(stack.endpoint)
    return stack


def ids(stack: ThrottleStack, kind: type[Any]) -> set[str]:
    return {event.request_id for event in stack.events() if isinstance(event, kind)}


async def test_a_stop_settles_what_runs_and_starts_nothing_that_waits(tmp_path: Path) -> None:
    """The ends of a stop free places, which no request may be started for any more."""
    async with engine(speed=1.0) as (_, url):
        stack = small(tmp_path, url)
        async with stack.running() as client:
            body = chat(max_tokens=LONG, stream=True)
            streams = [await client.post(CHAT, json=body) for _ in range(PLACES)]
            for stream in streams:
                await stream.content.readany()
            waits = [asyncio.create_task(post(client, chat(LONG))) for _ in range(PLACES)]
            await stack.send("by-event", chat(5))
            await until(lambda: len(stack.lane.state.waiting) == PLACES + 1)
            await stack.stop_dispatch()
            answers = await asyncio.gather(*waits)
            for stream in streams:
                stream.close()
        ends = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
        assert {(end.outcome, end.reason, end.upstream) for end in ends} == {
            ("failed", "process_stopped", "e0")
        }
        assert all(1 <= end.output_tokens < LONG for end in ends)
        assert ids(stack, LlmRequestStarted) == {end.request_id for end in ends}
        assert len(ids(stack, LlmRequestRejected)) == PLACES
        for status, answer, headers in answers:
            assert (status, answer["error"]["code"]) == (503, "process_stopped")
            assert headers["x-should-retry"] == "true"
        assert [*stack.lane.state.waiting] == ["by-event"]
    async with engine() as (_, url), _continued(stack, url).running():
        answer = await stack.answer()
        assert (answer["request_id"], answer["status"]) == ("by-event", 200)
    assert ids(stack, LlmRequestQueued) == ids(stack, LlmRequestFinished) | ids(
        stack, LlmRequestRejected
    )
    assert "lost" not in {e.outcome for e in stack.events() if isinstance(e, LlmRequestFinished)}


def _continued(stack: ThrottleStack, url: str) -> ThrottleStack:
    """Return the stack of the next process, whose engine is another one."""
    upstream = Upstream(name="e0", url=url)
    stack.access(stack.endpoint.model_copy(update={"upstreams": (upstream,)}))
    return stack


@pytest.mark.parametrize("by_event", [False, True])
async def test_an_answer_that_engines_cannot_stream_is_charged_its_whole_reservation(
    tmp_path: Path, by_event: bool
) -> None:
    """No engine says what it made of it, as where its client leaves."""
    async with serving(tmp_path, 1.0) as (stack, client):
        body = chat(LONG, use_beam_search=True)
        if by_event:
            await stack.send("r1", body)
        else:
            waits = asyncio.create_task(post(client, body))
        (dispatcher,) = stack.shell._dispatchers.values()
        await until(lambda: any(t.cut_end for t in dispatcher._tickets.started()))
        await stack.stop_dispatch()
        finished = stack.only(LlmRequestFinished)
        if not by_event:
            await asyncio.gather(waits, return_exceptions=True)
    assert (finished.outcome, finished.reason) == ("failed", "process_stopped")
    assert finished.output_tokens == LONG
    assert finished.prompt_tokens == stack.only(LlmRequestQueued).prompt_tokens > 0


async def test_ends_that_the_lane_has_no_room_for_are_reported_at_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as (stack, client):
        offer, refused = stack.lane.offer, asyncio.Event()

        def refuse_ends(message: Any) -> asyncio.Future[list[Fact]]:
            if isinstance(message, RequestsEnded):
                refused.set()
                raise Busy("full")
            return offer(message)

        with monkeypatch.context() as patch:
            patch.setattr(stack.lane, "offer", refuse_ends)
            assert (await post(client, chat()))[0] == 200
            await asyncio.wait_for(refused.wait(), PATIENCE_S)
        await stack.stop_dispatch()
    finished = stack.only(LlmRequestFinished)
    assert (finished.outcome, finished.output_tokens) == ("completed", 10)


async def test_a_stop_ends_in_time_while_the_broker_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next owner settles as lost what runs then."""
    monkeypatch.setattr(dispatch, "HAND_OVER_S", 0.02)
    monkeypatch.setattr(dispatch, "REPORT_S", 0.01)
    async with serving(tmp_path, 1.0) as (stack, client):
        stream = await client.post(CHAT, json=chat(LONG, stream=True))
        await stream.content.readany()
        monkeypatch.setattr(stack.lane, "offer", lambda _: asyncio.Future())
        await asyncio.wait_for(stack.stop_dispatch(), PATIENCE_S)
        assert [*stack.lane.state.running] == [stack.only(LlmRequestStarted).request_id]
        stream.close()


async def test_a_request_that_comes_as_the_lane_is_handed_over_is_not_queued(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (stack, client):
        (dispatcher,) = stack.shell._dispatchers.values()
        await stack.stop_dispatch()
        # A handler that has chosen the dispatcher before the stop, and has not yet offered.
        stack.shell._dispatchers[0] = dispatcher
        dispatcher.ready = True
        status, answer, _ = await post(client, chat())
        stack.shell._dispatchers.clear()
    assert (status, answer["error"]["code"]) == (503, "endpoint_unavailable")
    assert "llm.queued.v1" not in stack.types()
