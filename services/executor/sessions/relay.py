"""Gathers what many nodes send within a window into one record, and waits for the broker's ack."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.bus.log import Log
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

T = TypeVar("T")


@dataclass(slots=True)
class _Waiting(Generic[T]):
    item: T
    size: int
    acknowledged: asyncio.Future[None]


class Relay(Generic[T]):
    """Appends items in the order of their arrival; `encode` makes one record of several."""

    def __init__(
        self,
        log: Log,
        tp: TP,
        encode: Callable[[Sequence[T]], bytes],
        *,
        window_s: float,
        max_items: int,
        max_size: int,
    ) -> None:
        self._log = log
        self._tp = tp
        self._encode = encode
        self._window_s = window_s
        self._max_items = max_items
        self._max_size = max_size
        self._waiting: deque[_Waiting[T]] = deque()
        self._wake = asyncio.Event()
        self._stopped = False

    async def put(self, item: T, size: int) -> None:
        """Return once the broker has the item. Raises OutcomeUnknown: send it again."""
        if self._stopped:
            raise OutcomeUnknown(f"{self._tp.key}: stopping")
        waiting = _Waiting(item, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        await waiting.acknowledged

    async def run(self) -> None:
        """Append until cancelled; what is not acknowledged then is refused."""
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(self._window_s)
                self._wake.clear()
                while self._waiting:
                    await self._append(self._batch())
        finally:
            self._stopped = True
            for waiting in self._waiting:
                _settle(waiting, OutcomeUnknown(f"{self._tp.key}: stopping"))

    def _batch(self) -> list[_Waiting[T]]:
        """Take the oldest items that fit into one record; one at least."""
        batch = [self._waiting.popleft()]
        size = batch[0].size
        while self._waiting and len(batch) < self._max_items:
            size += self._waiting[0].size
            if size > self._max_size:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _append(self, batch: list[_Waiting[T]]) -> None:
        record = self._encode([waiting.item for waiting in batch])
        failure: OutcomeUnknown | None = None
        try:
            await self._log.append(self._tp, record)
        except OutcomeUnknown as error:
            failure = error
        except BaseException:
            for waiting in batch:
                _settle(waiting, OutcomeUnknown(f"{self._tp.key}: stopping"))
            raise
        for waiting in batch:
            _settle(waiting, failure)


def _settle(waiting: _Waiting[T], failure: OutcomeUnknown | None) -> None:
    """A request that was abandoned by its client waits no more."""
    if waiting.acknowledged.done():
        return
    if failure is None:
        waiting.acknowledged.set_result(None)
    else:
        waiting.acknowledged.set_exception(failure)
