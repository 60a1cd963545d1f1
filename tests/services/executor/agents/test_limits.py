"""Each node has its own share: what is above it waits, and a flood is refused."""

from __future__ import annotations

import asyncio

import pytest

from services.executor.agents import limits
from services.executor.agents.limits import MOST_WAITING, Places, ResourceLimit
from services.executor.agents.refusal import Refused
from shared.http.rate import Rate

FAST = Rate(1000, 1)
SLOW = Rate(0.5, 1)
"""The second request waits 2 s, the third longer than a request may."""
HARDLY = Rate(0.001, 10)


async def test_one_request_after_the_other_is_never_refused() -> None:
    pace = ResourceLimit("requests", FAST)
    for _ in range(50):
        await pace.take("n1")


async def test_a_large_message_is_taken_once_there_is_room_and_the_wait_follows() -> None:
    pace = ResourceLimit("lines", HARDLY)
    await pace.take("n1", 1000)
    with pytest.raises(Refused, match="lines: 0.001 a second, 10 at once, per node") as refused:
        await pace.take("n1")
    assert refused.value.status == 429 and (refused.value.retry_after_s or 0) > 900
    await pace.take("n2")


async def test_what_was_received_already_counts() -> None:
    pace = ResourceLimit("bytes", HARDLY)
    await pace.take("n1", 0)
    pace.spend("n1", 11)
    with pytest.raises(Refused, match="bytes"):
        await pace.take("n1", 0)


async def test_only_so_many_requests_of_a_node_wait() -> None:
    pace = ResourceLimit("requests", SLOW)
    await pace.take("n1")
    waiting = [asyncio.create_task(pace.take("n1")) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Refused, match="requests"):
        await pace.take("n1")
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    again = asyncio.create_task(pace.take("n1"))
    await asyncio.sleep(0)
    assert not again.done(), "room is free again, so that it waits"
    again.cancel()


async def test_only_so_many_requests_of_a_node_and_of_all_have_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LONGEST_WAIT_S", 0.05)
    places = Places("parts", 2, 3)
    async with places.taken("n1"), places.taken("n1"):
        with pytest.raises(Refused, match="parts: 2 at once per node, 3 of all nodes") as refused:
            await places.taken("n1").__aenter__()
        assert (refused.value.status, refused.value.retry_after_s) == (429, 1)
        async with places.taken("n2"):
            with pytest.raises(Refused):
                await places.taken("n3").__aenter__()
        async with places.taken("n3"):
            pass
    async with places.taken("n1"), places.taken("n1"):
        pass


async def test_who_waits_for_a_place_gets_it_and_only_so_many_wait() -> None:
    places, left = Places("parts", 1, 1), asyncio.Event()

    async def take() -> None:
        async with places.taken("n1"):
            await left.wait()

    taken = [asyncio.create_task(take()) for _ in range(1 + MOST_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(Refused):
        await places.taken("n1").__aenter__()
    left.set()
    await asyncio.gather(*taken)
