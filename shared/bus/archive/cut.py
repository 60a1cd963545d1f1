"""The records of one segment while they are collected, and when it is to be closed."""

from __future__ import annotations

from dataclasses import dataclass

from shared.bus.archive.segment import (
    CODEC,
    FORMAT,
    ArchiveEntry,
    Frame,
    object_name,
    pack_frame,
    sha256_of,
)
from shared.bus.archive.walk import Walk
from shared.bus.logs.log import Entry

FRAME_BYTES = 1 << 20
SEGMENT_BYTES = 64 << 20
ROW_BYTES = 32
"""About what a record has beside its value."""


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The last entry of a chain, as the next one refers to it."""

    n: int = -1
    sha256: str = ""
    made_ms: int = 0


class Cut:
    """Packs records as they come, so that a segment takes little memory while it grows."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._before = walk.cursor
        self._rows: list[Entry] = []
        self._row_bytes = 0
        self._body = bytearray()
        self._frames: list[Frame] = []
        self._raw_bytes = 0
        self._records = 0
        self._last_at = 0

    @property
    def is_empty(self) -> bool:
        return not self._records

    @property
    def raw_bytes(self) -> int:
        return self._raw_bytes + self._row_bytes

    def add(self, entry: Entry) -> None:
        """Take the next record. Raises ProtocolViolation for one that cannot be there."""
        self._walk.offer(entry)
        self._rows.append(entry)
        self._row_bytes += len(entry.value or b"") + ROW_BYTES
        self._records += 1
        self._last_at = entry.timestamp
        if self._row_bytes >= FRAME_BYTES:
            self._flush()

    def close(self, end: ChainEnd, writer: str, made_ms: int) -> tuple[ArchiveEntry, bytes]:
        """Return the entry that follows `end`, and its object."""
        self._flush()
        before, after, body = self._before, self._walk.cursor, bytes(self._body)
        tp, sha256 = self._walk.tp, sha256_of(body)
        accepted = after.seq - before.seq
        entry = ArchiveEntry(
            format=FORMAT,
            topic=tp.topic,
            partition=tp.partition,
            n=end.n + 1,
            first=before.next,
            next=after.next,
            before=before,
            after=after,
            accepted=accepted,
            ignored=self._records - accepted,
            last_at=self._last_at,
            codec=CODEC,
            object=object_name(tp, before.next, after.next, sha256),
            bytes=len(body),
            raw_bytes=self._raw_bytes,
            sha256=sha256,
            frames=tuple(self._frames),
            previous=end.sha256,
            writer=writer,
            made_ms=made_ms,
        )
        return entry, body

    def _flush(self) -> None:
        if not self._rows:
            return
        packed, raw_bytes = pack_frame(self._rows)
        self._frames.append(Frame(self._rows[0].offset, len(self._body), len(packed)))
        self._body += packed
        self._raw_bytes += raw_bytes
        self._rows, self._row_bytes = [], 0
