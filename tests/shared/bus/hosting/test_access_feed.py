from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.bus.hosting.access_feed import AccessFeed
from shared.bus.inputs.inbox import ACCESS
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S, until


class FedLane:
    """A lane that notes what it gets of `access`, from a given offset."""

    def __init__(self, next_offset: int = 0) -> None:
        self.next = next_offset
        self.is_holding = False
        self.inbox = self
        self.read: list[int] = []
        self.blocked_at = -1
        self.refuses = False
        self.unblock = asyncio.Event()

    def next_offsets(self) -> dict[TP, int]:
        return {ACCESS: self.next}

    async def deliver(self, tp: TP, offset: int, value: bytes | None) -> str:
        if self.refuses:
            return "old"
        if offset != self.next:
            return "old" if offset < self.next else "gap"
        if offset == self.blocked_at:
            await self.unblock.wait()
        self.next = offset + 1
        self.read.append(offset)
        return "ok"

    def release_held(self) -> None:
        self.is_holding = False


class Held:
    def __init__(self, lane: FedLane) -> None:
        self.lane = lane
        self.primed = asyncio.Event()


class Scene:
    """A running feed, and the lanes that it feeds."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.held: Any = {}
        self.primings = 0
        self.feed = AccessFeed(MemoryLog(self.broker), self.held, self._count_priming)

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.broker.append(ACCESS, b"record")

    def assign(self, *lanes: FedLane) -> None:
        self.held.clear()
        self.held.update({partition: Held(lane) for partition, lane in enumerate(lanes)})
        self.feed.note_assigned()

    def _count_priming(self) -> None:
        self.primings += 1


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr("shared.bus.hosting.access_feed.POLL_S", 0.005)
    made = Scene()
    made.append(3)
    running = asyncio.create_task(made.feed.run())
    yield made
    assert not running.done()
    running.cancel()
    await asyncio.wait({running})


async def test_each_lane_gets_what_it_lacks_once_and_in_order(scene: Scene) -> None:
    new, returned = FedLane(), FedLane(2)
    scene.assign(new, returned)
    await until(lambda: new.next == returned.next == 3)
    scene.append(2)
    await until(lambda: new.next == returned.next == 5)
    assert (new.read, returned.read) == ([0, 1, 2, 3, 4], [2, 3, 4])


async def test_a_lane_that_is_gained_later_is_read_for_from_its_own_offset(scene: Scene) -> None:
    old, gained = FedLane(), FedLane(1)
    scene.assign(old)
    await until(lambda: old.next == 3)
    scene.assign(old, gained)
    await until(lambda: gained.next == 3)
    assert (old.read, gained.read) == ([0, 1, 2], [1, 2])


async def test_a_lane_is_primed_once_it_has_read_to_the_end_of_the_start(scene: Scene) -> None:
    lane = FedLane()
    lane.blocked_at = 2
    scene.assign(lane)
    await until(lambda: lane.next == 2)
    assert not scene.held[0].primed.is_set()
    lane.unblock.set()
    await asyncio.wait_for(scene.held[0].primed.wait(), PATIENCE_S)
    assert lane.next == 3
    await until(lambda: scene.primings > 0)


async def test_a_lane_that_lacks_the_last_record_is_not_primed(scene: Scene) -> None:
    lane, revoked = FedLane(), FedLane(2)
    revoked.refuses = True
    scene.assign(lane, revoked)
    await asyncio.wait_for(scene.held[0].primed.wait(), PATIENCE_S)
    assert not scene.held[1].primed.is_set()


async def test_held_inputs_are_released_only_where_access_ends(scene: Scene) -> None:
    lane = FedLane()
    lane.is_holding = True
    scene.assign(lane)
    assert lane.is_holding
    await until(lambda: not lane.is_holding)
    assert lane.next == 3
