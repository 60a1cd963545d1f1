"""A log with scripted accidents of the network in front of any broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from shared.bus.logs.log import Feed, Headers, Log
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

Accident = Literal["none", "lost_request", "lost_ack", "late", "duplicate", "wrong_offset"]
"""The outcome of one append: `late` fails, and lands before this client's next one."""


class FlakyLog:
    """Applies one of `accidents` to each append, in order; `before_append` can race it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._late: list[tuple[TP, bytes]] = []
        self.accidents: deque[Accident] = deque()
        self.before_append: Callable[[TP], Awaitable[None]] | None = None
        self.is_end_unknown = False
        """Whether the broker does not answer where a partition ends."""
        self.appended = 0

    async def start(self) -> None:
        await self._log.start()

    async def stop(self) -> None:
        await self._log.stop()

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        if self.before_append is not None:
            await self.before_append(tp)
        late, self._late = self._late, []
        for delayed in late:
            await self._log.append(*delayed)
        accident = self.accidents.popleft() if self.accidents else "none"
        if accident == "late":
            self._late.append((tp, value))
        if accident in ("late", "lost_request"):
            raise OutcomeUnknown(f"{tp.key}: {accident}")
        offset = await self._log.append(tp, value, key=key, headers=headers)
        self.appended += 1
        if accident == "lost_ack":
            raise OutcomeUnknown(f"{tp.key}: {accident}")
        if accident == "duplicate":
            await self._log.append(tp, value, key=key, headers=headers)
        return -1 if accident == "wrong_offset" else offset

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        return await self._log.feed(start, lossy=lossy)

    async def begin(self, tp: TP) -> int:
        return await self._log.begin(tp)

    async def end(self, tp: TP) -> int:
        if self.is_end_unknown:
            raise OutcomeUnknown(f"{tp.key}: its end")
        return await self._log.end(tp)
