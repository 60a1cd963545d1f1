"""Put a backup into an empty broker, each record at the offset that it had."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Protocol

from shared.backup.files import BadBackup, Manifest, entries, open_backup
from shared.bus.log import Entry, Log
from shared.ledger.partition import TP

BATCH = 1_000


class Restorer(Protocol):
    """The one writer of a broker that nobody else writes to yet."""

    async def post(self, tp: TP, entry: Entry) -> asyncio.Future[int]:
        """Queue the record as it was, time and headers included; its offset comes later."""
        ...


async def load(folder: Path, log: Log, restorer: Restorer) -> Manifest:
    """Copy every record of the backup to its place; returns the manifest.

    The topics must exist and be empty, and nobody else may write meanwhile. A tenant's submissions
    whose beginning retention had taken come to lie at lower offsets: nothing refers to those, and
    a submission that is read again is known by its idempotency key.

    Raises BadBackup for a backup that is not whole, a topic that is not empty, and a record that
    came to another offset.
    """
    manifest = open_backup(folder)
    await log.start()
    try:
        for part in manifest.parts:
            if await log.end(part.tp):
                raise BadBackup(f"{part.tp.key}: not empty; a backup goes into an empty broker")
        for part in manifest.parts:
            await fill(part.tp, entries(folder, part), restorer, part.first)
    finally:
        await log.stop()
    return manifest


async def fill(tp: TP, found: Iterator[Entry], restorer: Restorer, first: int = 0) -> int:
    """Append all of them to an empty partition, offset `first` to 0; how many there were."""
    filled = 0
    for batch in _batches(found):
        posted = [await restorer.post(tp, entry) for entry in batch]
        for entry, offset in zip(batch, await asyncio.gather(*posted), strict=True):
            if offset != entry.offset - first:
                raise BadBackup(f"{tp.key}: offset {entry.offset} came to {offset}")
        filled += len(batch)
    return filled


def _batches(found: Iterator[Entry]) -> Iterator[list[Entry]]:
    while batch := list(islice(found, BATCH)):
        yield batch
