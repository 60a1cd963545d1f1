from __future__ import annotations

import asyncio

from shared.bus.hosting.backlogs import Backlogs


class Lanes:
    """Lanes that are full until the test opens them."""

    def __init__(self) -> None:
        self.open = {0: asyncio.Event(), 1: asyncio.Event()}
        self.delivered: list[str] = []
        self.paused: list[int] = []
        self.rebalances = False
        self.backlogs = Backlogs(self.deliver, self.paused.append, self.paused.remove)

    async def deliver(self, message: tuple[int, str]) -> bool:
        lane, name = message
        await self.open[lane].wait()
        if not self.rebalances:
            self.delivered.append(name)
        return not self.rebalances

    def add(self, lane: int, *names: str) -> None:
        for name in names:
            self.backlogs.add(lane, (lane, name))


async def test_a_full_lane_is_paused_until_its_records_are_delivered_in_order() -> None:
    lanes = Lanes()
    lanes.add(0, "a", "b")
    lanes.add(1, "x")
    assert lanes.paused == [0, 1] and 0 in lanes.backlogs
    lanes.open[1].set()
    await lanes.backlogs.wait_for_one()
    assert (lanes.delivered, lanes.paused) == (["x"], [0])
    lanes.add(0, "c")
    lanes.open[0].set()
    await lanes.backlogs.wait_for_one()
    assert lanes.delivered == ["x", "a", "b", "c"]
    assert not lanes.backlogs and not lanes.paused


async def test_after_a_rebalance_what_waits_is_left_to_be_read_again() -> None:
    lanes = Lanes()
    lanes.rebalances = True
    lanes.add(0, "a", "b")
    lanes.open[0].set()
    await lanes.backlogs.wait_for_one()
    assert not lanes.delivered and not lanes.backlogs and not lanes.paused


async def test_the_end_drops_what_waits() -> None:
    lanes = Lanes()
    lanes.add(0, "a")
    await lanes.backlogs.close()
    assert not lanes.delivered and not lanes.backlogs and not lanes.paused
    await lanes.backlogs.wait_for_one()
