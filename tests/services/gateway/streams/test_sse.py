"""A stream of events begins with its first frame, loses nothing, and ends for a reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from services.gateway.streams import sse
from services.gateway.streams.hub import EventHeader
from services.gateway.streams.sse import ALIVE, OPENING, WAITING, EventStream, event_frames
from shared.bus.logs.memory import MemoryBroker
from tests.patience import PATIENCE_S
from tests.services.gateway.events import LANE, event, publish, running_hub

REVOKED = b'event: end\ndata: {"reason":"key_revoked"}\n\n'


def everything(header: EventHeader) -> bool:
    return True


async def test_what_comes_after_the_first_frame_belongs_to_the_stream() -> None:
    broker = MemoryBroker()
    async with running_hub(broker) as hub:
        frames = event_frames(hub, None, everything, lambda: True)
        assert await anext(frames) == OPENING
        await publish(broker, hub, event("a"))
        assert b'"subject":"a"' in await anext(frames)


async def test_a_stream_from_a_position_goes_on_with_live_events_without_repeat() -> None:
    broker = MemoryBroker()
    for subject in ("a", "b"):
        broker.append(LANE, event(subject))
    async with running_hub(broker) as hub:
        frames = event_frames(hub, [1], everything, lambda: True)
        assert await anext(frames) == OPENING
        assert b'"subject":"b"' in await anext(frames)
        await publish(broker, hub, event("c"))
        assert b'"subject":"c"' in await anext(frames)


async def test_a_sign_that_all_is_sent_comes_before_events_that_never_pause() -> None:
    broker = MemoryBroker()
    broker.append(LANE, event("a"))
    async with running_hub(broker) as hub:
        frames = event_frames(hub, [0], everything, lambda: True)
        assert await anext(frames) == OPENING
        assert b'"subject":"a"' in await anext(frames)
        assert await anext(frames) == ALIVE
        await publish(broker, hub, event("b"))
        assert b'"subject":"b"' in await anext(frames)


async def test_streams_of_one_user_read_the_past_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "ALIVE_EVERY_S", 0.01)
    broker, turns = MemoryBroker(), asyncio.Semaphore(1)
    broker.append(LANE, event("a"))
    async with running_hub(broker) as hub:

        def of_this_user() -> AsyncIterator[bytes]:
            return event_frames(hub, [0], everything, lambda: True, turns)

        first, second = of_this_user(), of_this_user()
        assert [await anext(first), await anext(second)] == [OPENING, OPENING]
        assert b'"subject":"a"' in await anext(first)
        assert await anext(second) == WAITING
        assert await anext(first) == ALIVE, "it has the past, and gives its turn to another"
        assert b'"subject":"a"' in await anext(second)
        assert isinstance(second, AsyncGenerator)
        await second.aclose()
        assert not turns.locked(), "a client that leaves gives its turn back"


async def test_the_past_ends_with_the_right_to_it() -> None:
    broker, rights = MemoryBroker(), [True, False]
    for subject in ("a", "b"):
        broker.append(LANE, event(subject))
    async with running_hub(broker) as hub:
        frames = event_frames(hub, [0], everything, lambda: bool(rights and rights.pop(0)))
        chunks = [chunk async for chunk in frames]
        assert [b"subject" in chunk for chunk in chunks] == [False, True, False, False]
        assert chunks[-1] == REVOKED


async def test_a_stream_ends_with_the_right_to_it_and_leaves_the_hub() -> None:
    broker, rights = MemoryBroker(), [True, False]
    async with running_hub(broker, room=1) as hub:
        frames = event_frames(hub, None, everything, lambda: rights.pop(0))
        assert await anext(frames) == OPENING
        await publish(broker, hub, event("a"))
        assert [b"data" in chunk async for chunk in frames] == [True, True]
        assert hub._subscribers == set()


async def test_the_end_names_the_lost_right() -> None:
    async with running_hub(MemoryBroker()) as hub:
        frames = event_frames(hub, None, everything, lambda: False)
        assert [chunk async for chunk in frames] == [OPENING, REVOKED]


async def sent_of(
    frames: AsyncIterator[bytes], receive: Callable[[], Awaitable[dict[str, Any]]]
) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        messages.append(message)

    await EventStream(frames)({"type": "http"}, receive, send)
    return messages


async def test_a_response_has_every_frame_and_then_an_end() -> None:
    async def frames() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def stays() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    head, *bodies = await sent_of(frames(), stays)
    assert head["status"] == 200 and (b"cache-control", b"no-store") in head["headers"]
    assert [body["body"] for body in bodies] == [b"one", b"two", b""]
    assert [body["more_body"] for body in bodies] == [True, True, False]


async def test_a_client_that_leaves_closes_its_frames() -> None:
    is_closed = asyncio.Event()

    async def frames() -> AsyncGenerator[bytes]:
        try:
            yield b"one"
            await asyncio.Event().wait()
        finally:
            is_closed.set()

    async def leaves() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async with aclosing(frames()) as open_frames, asyncio.timeout(PATIENCE_S):
        await sent_of(open_frames, leaves)
    assert is_closed.is_set()
