"""The port to an append-only log; adapters are `kafka` and, for tests, `memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

__all__ = ["Entry", "Feed", "Headers", "Log", "OutcomeUnknown", "fetch"]

Headers = Sequence[tuple[str, bytes]]


class Entry(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: int = 0


class Feed(Protocol):
    """A moving read of some partitions, in offset order within each."""

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        """Return the available records, or none after `wait_s`.

        Raises TailLost when an offset is gone.
        """
        ...

    async def seek(self, tp: TP, offset: int) -> None: ...

    async def close(self) -> None: ...


class Log(Protocol):
    """One client of the log; not shared between lanes."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        """Return the offset of the record. Raises OutcomeUnknown; never retries by itself."""
        ...

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        """Read from these offsets; `lossy` goes on at the oldest when one is gone."""
        ...

    async def begin(self, tp: TP) -> int: ...

    async def end(self, tp: TP) -> int:
        """Return the next offset; on the embedded broker a lower bound after a batch."""
        ...


async def fetch(log: Log, tp: TP, offset: int, max_records: int, wait_s: float) -> list[Entry]:
    """Read once from one offset of a log."""
    feed = await log.feed({tp: offset})
    try:
        return (await feed.poll(wait_s, max_records)).get(tp, [])
    finally:
        await feed.close()
