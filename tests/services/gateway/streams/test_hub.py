"""One reader of `events` serves all subscribers, each by a queue of its own."""

from __future__ import annotations

import pytest

from services.gateway.streams.hub import EventHeader, EventHub, frame_event
from services.gateway.streams.sse import live_frames
from shared.bus.logs.log import Entry
from shared.bus.logs.memory import MemoryBroker
from tests.services.gateway.events import LANE, event, publish, running_hub


def is_of_ada(header: EventHeader) -> bool:
    return header.tenant == "ada"


async def replayed(hub: EventHub, start: list[int]) -> list[bytes]:
    return [frame async for frame in hub.replay(start, is_of_ada)]


async def test_a_subscriber_receives_what_it_accepts_from_now_on() -> None:
    broker = MemoryBroker()
    broker.append(LANE, event("before"))
    async with running_hub(broker) as hub:
        subscriber = hub.subscribe(is_of_ada)
        await publish(broker, hub, event("a"), event("b", tenant="bob"))
        hub.unsubscribe(subscriber)
        await publish(broker, hub, event("after"))
    frame = subscriber.queue.get_nowait()
    assert frame is not None and frame.startswith(b"id: 2\nevent: job.held.v1\ndata: ")
    assert b'"subject":"a"' in frame and subscriber.queue.empty()


async def test_a_slow_client_receives_the_end_and_others_continue() -> None:
    broker = MemoryBroker()
    async with running_hub(broker, room=5) as hub:
        slow, quick = hub.subscribe(is_of_ada), hub.subscribe(is_of_ada)
        for number in range(20):
            await publish(broker, hub, event(f"e{number}"))
            frame = quick.queue.get_nowait()
            assert frame is not None and f'"e{number}"'.encode() in frame
    end = [chunk async for chunk in live_frames(slow, lambda: True)]
    assert end[-1] == b'event: end\ndata: {"reason":"slow_client"}\n\n'
    assert b"".join(end).count(b"id: ") == 5


async def test_a_replay_goes_from_a_position_to_that_of_the_hub() -> None:
    broker = MemoryBroker()
    for subject in ("a", "b", "c"):
        broker.append(LANE, event(subject))
    async with running_hub(broker) as hub:
        start = [1]
        frames = await replayed(hub, start)
        assert [b'"subject":"b"' in frames[0], b'"subject":"c"' in frames[1]] == [True, True]
        assert (len(frames), start) == (2, [3])
        assert await replayed(hub, start) == await replayed(hub, [9]) == []


@pytest.mark.parametrize(
    "value",
    [None, b"{", b'{"type":"a\\nb"}', b'{\n"type":"a"}', b'{"type":"a","x":"\xff"}'],
    ids=["empty", "cut", "type on two lines", "two lines", "no utf-8"],
)
def test_bytes_that_would_break_the_stream_are_no_event(value: bytes | None) -> None:
    assert frame_event(Entry(0, None, value), [1]) is None
