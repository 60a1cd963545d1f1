"""Gathers what many nodes send into few records, and waits for the broker's ack."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import ValidationError

from shared.bus.logs.log import Log
from shared.ledger.errors import OutcomeUnknown, TooLarge
from shared.ledger.partition import TP

T = TypeVar("T")
MOST_POSTED = 4096
"""Waiting items above which a posted one is dropped."""


@dataclass(slots=True)
class _Waiting(Generic[T]):
    item: T
    size_bytes: int
    count: int
    acknowledged: asyncio.Future[None]


class Relay(Generic[T]):
    """Appends items in the order of their arrival; `encode` makes one record of several.

    What comes after a pause is appended at once; appends begin at least `window_s` apart, and what
    comes meanwhile goes into the next one.
    A record has at most `max_count` messages and, if given, `max_bytes` of items as received.

    An item that cannot be encoded or appended fails alone, with its sender's request.
    """

    def __init__(
        self,
        log: Log,
        tp: TP,
        encode: Callable[[Sequence[T]], bytes],
        *,
        window_s: float,
        max_count: int,
        max_bytes: int | None,
    ) -> None:
        self._log = log
        self._tp = tp
        self._encode = encode
        self._window_s = window_s
        self._max_count = max_count
        self._max_bytes = math.inf if max_bytes is None else max_bytes
        self._waiting: deque[_Waiting[T]] = deque()
        self._wake = asyncio.Event()
        self._stopped = False

    async def put(self, item: T, size_bytes: int = 0, count: int = 1) -> None:
        """Return once the broker has the item, which holds `count` messages.

        Raises OutcomeUnknown: send it again; ValidationError and TooLarge: it is at fault.
        """
        if self._stopped:
            raise OutcomeUnknown(f"{self._tp.key}: stopping")
        waiting = _Waiting(item, size_bytes, count, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._wake.set()
        await waiting.acknowledged

    def post(self, item: T, count: int = 1) -> None:
        """Append an item of `count` messages, if any, without waiting for that.

        It is lost where the broker does not take it, or where many wait already.
        """
        if not count or self._stopped or len(self._waiting) >= MOST_POSTED:
            return
        waiting = _Waiting(item, 0, count, asyncio.get_running_loop().create_future())
        waiting.acknowledged.add_done_callback(asyncio.Future.exception)
        self._waiting.append(waiting)
        self._wake.set()

    async def run(self) -> None:
        """Append until cancelled; what is not acknowledged then is refused."""
        now_s, due_s = asyncio.get_running_loop().time, 0.0
        try:
            while True:
                await self._wake.wait()
                await asyncio.sleep(max(0.0, due_s - now_s()))
                due_s = now_s() + self._window_s
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
        size_bytes, count = batch[0].size_bytes, batch[0].count
        while self._waiting:
            size_bytes += self._waiting[0].size_bytes
            count += self._waiting[0].count
            if size_bytes > self._max_bytes or count > self._max_count:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _append(self, batch: list[_Waiting[T]]) -> None:
        failure: Exception | None = None
        try:
            record = self._encode([waiting.item for waiting in batch])
            await self._log.append(self._tp, record)
        except OutcomeUnknown as error:
            failure = error
        except (ValidationError, TooLarge) as error:
            if len(batch) > 1:
                for waiting in batch:
                    await self._append([waiting])
                return
            failure = error
        except BaseException:
            for waiting in batch:
                _settle(waiting, OutcomeUnknown(f"{self._tp.key}: stopping"))
            raise
        for waiting in batch:
            _settle(waiting, failure)


def _settle(waiting: _Waiting[T], failure: Exception | None) -> None:
    """Complete the request unless its client has abandoned it."""
    if waiting.acknowledged.done():
        return
    if failure is None:
        waiting.acknowledged.set_result(None)
    else:
        waiting.acknowledged.set_exception(failure)
