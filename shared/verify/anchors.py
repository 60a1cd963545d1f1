"""Anchors: the last record of each topic that a run has read, by which the next one knows it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from shared.bus.logs.log import Entry, Log, fetch
from shared.ledger.errors import ProtocolViolation
from shared.ledger.partition import TP

WAIT_S = 1.0
"""Between two looks at a partition whose record does not come."""


class Anchor(NamedTuple):
    """The offset of a record and the SHA-256 of its value."""

    offset: int
    sha256: str


def anchors_of(last: Mapping[TP, Entry]) -> dict[TP, Anchor]:
    """Return the anchors of partitions by their last records."""
    return {tp: Anchor(entry.offset, sha256_of(entry.value)) for tp, entry in last.items()}


async def read_changed(log: Log, anchors: Mapping[TP, Anchor]) -> list[TP]:
    """Return the partitions that have lost their anchor, or have another record in its place.

    One whose anchor was removed by retention is taken for unchanged.
    """
    if not anchors:
        return []
    await log.start()
    try:
        return [tp for tp, anchor in anchors.items() if not await _holds(log, tp, anchor)]
    finally:
        await log.stop()


async def _holds(log: Log, tp: TP, anchor: Anchor) -> bool:
    """Return whether the record is there, or was removed, or the log cannot be read.

    The run that follows reads the same log, and reports its error.
    """
    try:
        while await log.begin(tp) <= anchor.offset:
            if await log.end(tp) <= anchor.offset:
                return False
            for entry in await fetch(log, tp, anchor.offset, 1, WAIT_S):
                return sha256_of(entry.value) == anchor.sha256
    except ProtocolViolation:
        pass
    return True


def sha256_of(value: bytes | None) -> str:
    return hashlib.sha256(value or b"").hexdigest()
