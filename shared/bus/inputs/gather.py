"""The first stage of a lane: wait until a round is due, and draw its inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from shared.bus.inputs.inbox import Inbox, PendingRecord
from shared.bus.inputs.local_inputs import LocalInput, LocalInputs
from shared.ledger.decider import Decision, Input

MAX_INPUTS = 200
MAX_INPUT_BYTES = 192 * 1024
IDLE_WAKE_S = 0.05
BUSY_WINDOWS = 5
"""A lane is busy for so many windows after a round."""


class RetriedInput(NamedTuple):
    """Inputs that are decided again, and the event behind them."""

    request: str
    """Id of the input that requests it."""
    inputs: tuple[Input, ...]
    closing: Decision


class Batch(NamedTuple):
    """The inputs of one round: local ones first, then records in the order of arrival."""

    locals: list[LocalInput]
    records: list[PendingRecord]
    retried: tuple[RetriedInput, ...] = ()
    """Inputs that are decided again, behind the others: the last record requests them."""

    @property
    def inputs(self) -> list[Input]:
        inputs = [local.input for local in self.locals]
        for record in self.records:
            inputs.extend(record.inputs)
        for retry in self.retried:
            inputs.extend(retry.inputs)
        return inputs

    @property
    def closing(self) -> list[Decision]:
        """Events of the lane itself, once all inputs are decided."""
        return [retry.closing for retry in self.retried]

    @property
    def can_be_halved(self) -> bool:
        """Return whether more than one of its parts has inputs."""
        return len(self.locals) + sum(1 for record in self.records if record.weight) > 1

    def before(self, cause: str) -> Batch | None:
        """Return what comes before the input with this id.

        None if it is not there, or not the first one of its record, which is used up as a whole.
        """
        for index, local in enumerate(self.locals):
            if local.input.id == cause:
                return Batch(self.locals[:index], [])
        for index, record in enumerate(self.records):
            if record.inputs and record.inputs[0].id == cause:
                return Batch(self.locals, self.records[:index])
        return None


class Gatherer:
    """Collects the inputs of a round. Each round is one append, so batches set the cost."""

    def __init__(self, inbox: Inbox, locals_: LocalInputs, window_s: float) -> None:
        self.inbox = inbox
        self._locals = locals_
        self._window_s = window_s
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._closed = False
        self._idle = False
        self._last_round_s = 0.0
        self._max_inputs = MAX_INPUTS
        self._only_locals = False

    def notify(self) -> None:
        """Note that an input has arrived, or the lane is closed."""
        self._arrived.set()
        if self.inbox.pending_inputs + len(self._locals) >= self._max_inputs:
            self._full.set()

    def close(self) -> None:
        self._closed = True
        self.notify()

    async def wait_until_due(self, due_in_s: Callable[[], float | None]) -> None:
        """Return when an input has come or a wake is due; `due_in_s` is None without a wake.

        A wake that led to nothing does not lead to the next one at once.
        """
        pause_s = IDLE_WAKE_S if self._idle else 0.0
        self._idle = False
        while not (self._closed or self._locals or self.inbox.pending > 0):
            self._arrived.clear()
            due_s = due_in_s()
            if due_s == 0 and pause_s == 0:
                return
            try:
                async with asyncio.timeout(None if due_s is None else max(due_s, pause_s)):
                    await self._arrived.wait()
            except TimeoutError:
                return

    async def fill_window(self, now_s: float) -> None:
        """Wait a window when busy, a quarter of it after a pause; less once a batch is full.

        A local input, whose sender waits, is held back for one window at most, the append that it
        met included.
        """
        busy = now_s - self._last_round_s < BUSY_WINDOWS * self._window_s
        window_s = self._window_s if busy else self._window_s / 4
        window_s = min(window_s, self._locals.oldest_s + self._window_s - now_s)
        self._full.clear()
        self.notify()
        try:
            async with asyncio.timeout(max(window_s, 0.0)):
                await self._full.wait()
        except TimeoutError:
            return

    def draw(self) -> Batch:
        """Return the oldest undecided inputs; they stay where they are until they are decided."""
        most = min(len(self._locals), self._max_inputs)
        if most and self._only_locals:
            return Batch(self._locals.oldest(most), [])
        room = max(self._max_inputs - most, 1)
        return Batch(self._locals.oldest(most), self.inbox.batch(room, MAX_INPUT_BYTES))

    def end_round(self, now_s: float) -> None:
        self._last_round_s = now_s

    def note_silent(self, batch: Batch) -> None:
        """Note that a round led to no event."""
        self._idle = not (batch.locals or batch.records)

    def halve(self, batch: Batch) -> bool:
        """Make the next batch half of this one; False when there is nothing to halve."""
        if not batch.can_be_halved:
            return False
        if self._max_inputs == 1:
            self._only_locals = True
        inputs = len(batch.locals) + sum(record.weight for record in batch.records)
        self._max_inputs = max(min(inputs, self._max_inputs) // 2, 1)
        return True

    def grow(self) -> None:
        """Double the size after a success, up to the full one."""
        self._max_inputs = min(self._max_inputs * 2, MAX_INPUTS)
        self._only_locals = False
