from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from shared.bus.hosting.watchdog import CHECK_EVERY_S, STALLED_S, Watchdog
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import Stalled, TailLost
from shared.ledger.partition import TP
from tests.chaos import virtual_time

LEDGER, COMMANDS = TP("admission", 0), TP("commands", 0)


class ReadingLane:
    """The offsets of a lane, as the watchdog reads them."""

    tp = LEDGER

    def __init__(self) -> None:
        self.offsets = {COMMANDS: 0, LEDGER: 0}
        self.marks = 0

    def mark(self) -> None:
        self.marks += 1

    def known_offsets(self) -> dict[TP, int]:
        return self.offsets


class Scene:
    """A lane, its log and its watchdog, in virtual time."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.lane = ReadingLane()
        watched: Any = [self.lane]
        self._watchdog = Watchdog(MemoryLog(self.broker), lambda: watched)

    async def watch(self, within_s: float) -> None:
        async with asyncio.timeout(within_s):
            await self._watchdog.run()


def in_virtual_time(check: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(0, lambda: check(Scene()))


def test_an_input_that_grows_unread_is_stalled() -> None:
    async def check(scene: Scene) -> None:
        scene.broker.append(COMMANDS, b"record")
        with pytest.raises(Stalled, match="commands-0"):
            await scene.watch(STALLED_S + 3 * CHECK_EVERY_S)
        assert asyncio.get_running_loop().time() > STALLED_S

    in_virtual_time(check)


def test_an_idle_lane_is_marked_unless_its_tail_is_lost() -> None:
    async def check(scene: Scene) -> None:
        with pytest.raises(TimeoutError):
            await scene.watch(2.5 * CHECK_EVERY_S)
        assert scene.lane.marks == 2
        scene.lane.offsets[LEDGER] = 5
        with pytest.raises(TailLost):
            await scene.watch(600.0)
        assert scene.lane.marks == 2

    in_virtual_time(check)


def test_an_input_that_is_read_slowly_is_not_stalled() -> None:
    async def read_slowly(scene: Scene) -> None:
        while True:
            scene.broker.append(COMMANDS, b"record")
            scene.broker.append(COMMANDS, b"record")
            await asyncio.sleep(STALLED_S - 2 * CHECK_EVERY_S)
            scene.lane.offsets[COMMANDS] += 1

    async def check(scene: Scene) -> None:
        reading = asyncio.ensure_future(read_slowly(scene))
        with pytest.raises(TimeoutError):
            await scene.watch(600.0)
        reading.cancel()

    in_virtual_time(check)


def test_a_ledger_that_a_rival_writes_is_not_stalled() -> None:
    async def check(scene: Scene) -> None:
        scene.broker.append(LEDGER, b"record")
        with pytest.raises(TimeoutError):
            await scene.watch(600.0)

    in_virtual_time(check)


def test_a_pause_of_the_process_begins_the_wait_anew() -> None:
    async def pause(seconds: float) -> None:
        await asyncio.sleep(STALLED_S - CHECK_EVERY_S)
        loop: Any = asyncio.get_running_loop()
        loop._jumping.now_s += seconds

    async def check(scene: Scene) -> None:
        scene.broker.append(COMMANDS, b"record")
        pausing = asyncio.ensure_future(pause(100.0))
        with pytest.raises(Stalled):
            await scene.watch(600.0)
        assert asyncio.get_running_loop().time() > 100.0 + STALLED_S
        await pausing

    in_virtual_time(check)


@pytest.mark.parametrize("tp", [COMMANDS, LEDGER])
def test_a_log_that_becomes_shorter_has_lost_its_tail(tp: TP) -> None:
    async def check(scene: Scene) -> None:
        scene.lane.offsets[tp] = 1
        with pytest.raises(TailLost, match=tp.key):
            await scene.watch(3 * CHECK_EVERY_S)

    in_virtual_time(check)


def test_an_end_that_is_only_reported_too_low_is_read_once() -> None:
    async def check(scene: Scene) -> None:
        reads: list[TP] = []

        class Modest(MemoryLog):
            async def end(self, tp: TP) -> int:
                return 0

            async def feed(self, start: Any, *, lossy: bool = False) -> Any:
                reads.extend(start)
                return await super().feed(start, lossy=lossy)

        scene.broker.append(COMMANDS, b"record")
        scene.lane.offsets[COMMANDS] = 1
        scene._watchdog._client = Modest(scene.broker)
        with pytest.raises(TimeoutError):
            await scene.watch(10 * CHECK_EVERY_S)
        assert reads == [COMMANDS]

    in_virtual_time(check)
