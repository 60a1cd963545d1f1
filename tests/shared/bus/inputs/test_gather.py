from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from shared.bus.inputs.gather import BUSY_WINDOWS, IDLE_WAKE_S, MAX_INPUTS, Batch, Gatherer
from shared.bus.inputs.inbox import Inbox
from shared.bus.inputs.local_inputs import LocalInputs
from shared.contracts.job_commands import CancelJob
from shared.ledger.inputs import InputDecoder
from shared.ledger.partition import TP
from tests.chaos import virtual_time
from tests.harness.ledger import command

COMMANDS = TP("commands", 0)
WINDOW_S = 0.4
NOTHING = Batch([], [])

T = TypeVar("T")


class Inputs:
    """The inputs of a lane and their gatherer."""

    def __init__(self) -> None:
        self.inbox = Inbox([COMMANDS], InputDecoder("admission"))
        self.locals = LocalInputs("admission-0")
        self.gatherer = Gatherer(self.inbox, self.locals, WINDOW_S)

    def receive(self, count: int = 1) -> None:
        for _ in range(count):
            offset = self.inbox.next_offsets()[COMMANDS]
            self.inbox.put(COMMANDS, offset, command(f"c{offset}"))
        self.gatherer.notify()

    def offer(self, count: int = 1) -> None:
        for _ in range(count):
            self.locals.add(CancelJob(job_id="local"))
        self.gatherer.notify()

    def draw(self) -> tuple[int, int]:
        batch = self.gatherer.draw()
        return len(batch.locals), len(batch.records)


def in_virtual_time(check: Callable[[Inputs], Coroutine[Any, Any, T]]) -> T:
    return virtual_time.run(0, lambda: check(Inputs()))


async def seconds(work: Coroutine[Any, Any, None]) -> float:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await work
    return loop.time() - began_s


async def test_local_inputs_come_before_records() -> None:
    inputs = Inputs()
    inputs.receive(2)
    inputs.offer()
    batch = inputs.gatherer.draw()
    assert [item.source for item in batch.inputs] == ["local", "commands", "commands"]


async def test_a_batch_has_at_most_so_many_inputs_and_always_room_for_a_record() -> None:
    inputs = Inputs()
    inputs.receive(MAX_INPUTS + 1)
    assert inputs.draw() == (0, MAX_INPUTS)
    inputs.offer(50)
    assert inputs.draw() == (50, MAX_INPUTS - 50)
    inputs.offer(MAX_INPUTS)
    assert inputs.draw() == (MAX_INPUTS, 1)


async def test_a_halved_batch_grows_back_step_by_step() -> None:
    inputs = Inputs()
    inputs.receive(MAX_INPUTS)
    assert inputs.gatherer.halve(inputs.gatherer.draw())
    assert inputs.draw() == (0, MAX_INPUTS // 2)
    assert inputs.gatherer.halve(inputs.gatherer.draw())
    inputs.gatherer.grow()
    assert inputs.draw() == (0, MAX_INPUTS // 2)
    for _ in range(3):
        inputs.gatherer.grow()
    assert inputs.draw() == (0, MAX_INPUTS)


async def test_one_input_cannot_be_halved() -> None:
    inputs = Inputs()
    assert not inputs.gatherer.halve(NOTHING)
    inputs.receive()
    assert not inputs.gatherer.halve(inputs.gatherer.draw())


def test_the_wait_ends_with_an_input() -> None:
    async def check(inputs: Inputs) -> float:
        asyncio.get_running_loop().call_later(3.0, inputs.receive)
        return await seconds(inputs.gatherer.wait_until_due(lambda: None))

    assert in_virtual_time(check) == 3.0


def test_the_wait_ends_at_once_where_an_input_is_undecided() -> None:
    async def check(inputs: Inputs) -> float:
        inputs.offer()
        return await seconds(inputs.gatherer.wait_until_due(lambda: None))

    assert in_virtual_time(check) == 0.0


@pytest.mark.parametrize("due_s", [0.0, 7.5])
def test_the_wait_ends_with_a_wake(due_s: float) -> None:
    async def check(inputs: Inputs) -> float:
        return await seconds(inputs.gatherer.wait_until_due(lambda: due_s))

    assert in_virtual_time(check) == due_s


def test_a_wake_without_an_event_is_not_repeated_at_once() -> None:
    async def check(inputs: Inputs) -> list[float]:
        inputs.gatherer.note_silent(NOTHING)
        wait = inputs.gatherer.wait_until_due
        return [await seconds(wait(lambda: 0.0)) for _ in range(2)]

    assert in_virtual_time(check) == [IDLE_WAKE_S, 0.0]


def test_the_wait_ends_when_the_lane_is_closed() -> None:
    async def check(inputs: Inputs) -> float:
        asyncio.get_running_loop().call_later(2.0, inputs.gatherer.close)
        return await seconds(inputs.gatherer.wait_until_due(lambda: None))

    assert in_virtual_time(check) == 2.0


@pytest.mark.parametrize(
    ("windows_since_round", "waited_s"),
    [(BUSY_WINDOWS - 1, WINDOW_S), (BUSY_WINDOWS + 1, WINDOW_S / 4)],
)
def test_a_busy_lane_gathers_for_longer(windows_since_round: int, waited_s: float) -> None:
    async def check(inputs: Inputs) -> float:
        inputs.gatherer.end_round(100.0)
        now_s = 100.0 + windows_since_round * WINDOW_S
        return await seconds(inputs.gatherer.fill_window(now_s))

    assert in_virtual_time(check) == waited_s


@pytest.mark.parametrize(("offered_s", "waited_s"), [(100.0, 0.3), (99.0, 0.0), (100.1, 0.4)])
def test_a_local_input_is_held_back_for_one_window_with_the_append_that_it_met(
    offered_s: float, waited_s: float
) -> None:
    async def check(inputs: Inputs) -> float:
        inputs.gatherer.end_round(100.1)
        inputs.locals.add(CancelJob(job_id="a"), offered_s)
        inputs.locals.add(CancelJob(job_id="b"), offered_s + 0.05)
        return await seconds(inputs.gatherer.fill_window(100.1))

    assert in_virtual_time(check) == pytest.approx(waited_s)


def test_the_window_ends_once_a_batch_is_full() -> None:
    async def check(inputs: Inputs) -> float:
        inputs.receive(MAX_INPUTS - 1)
        asyncio.get_running_loop().call_later(0.05, inputs.offer)
        return await seconds(inputs.gatherer.fill_window(0.0))

    assert in_virtual_time(check) == 0.05
