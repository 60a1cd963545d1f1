"""Restore a backup into an empty broker, each record at its offset."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

from shared.backup.files import BackupManifest, BackupPart, BadBackup, entries, open_backup
from shared.backup.tails import archived_records, check_archive
from shared.bus.archive.archive import Archive
from shared.bus.logs.log import Entry, Log
from shared.contracts.topics import LOSSY_INPUTS
from shared.ledger.partition import TP

BATCH = 1_000


class Restorer(Protocol):
    """The only writer of a broker while a backup is restored."""

    async def post(self, tp: TP, entry: Entry) -> asyncio.Future[int]:
        """Queue a record with its time and headers; the future holds its offset."""
        ...


async def load(
    folder: Path, log: Log, restorer: Restorer, archive: Archive | None = None
) -> BackupManifest:
    """Copy every record of the backup to its topic, of tails also those before them that the
    archive has; return the manifest.

    The topics must exist and be empty, and must have no other writer meanwhile. Submissions of a
    tenant that began after offset 0, because of retention, get lower offsets: no ledger refers to
    these, and a submission that is read again is recognised by its idempotency key. Before the
    first record of an input with retention, to whose offsets a ledger refers, come empty ones.

    Raises BadBackup for an incomplete backup, another archive than that of the tails, a topic that
    is not empty, and a record that was appended at another offset; BadArchive for a damaged one.
    """
    manifest = open_backup(folder)
    await asyncio.to_thread(check_archive, archive, manifest)
    await log.start()
    try:
        for part in manifest.parts:
            if await log.end(part.tp):
                raise BadBackup(
                    f"{part.tp.key}: not empty; a backup is restored into an empty broker"
                )
        for part in manifest.parts:
            before = _records_before(part, archive)
            first = part.first if before is None else 0
            stored = chain(before or (), entries(folder, part))
            await fill(part.tp, stored, restorer, first)
    finally:
        await log.stop()
    return manifest


def _records_before(part: BackupPart, archive: Archive | None) -> Iterator[Entry] | None:
    """Return what comes before the file of a partition; None if its offsets begin anew."""
    if archive is not None and part.archived is not None:
        return archived_records(archive, part)
    return map(empty_entry, range(part.first)) if part.topic in LOSSY_INPUTS else None


def empty_entry(offset: int) -> Entry:
    """Return the record that stands for one that was removed before the backup."""
    return Entry(offset, None, b"")


async def fill(tp: TP, stored: Iterator[Entry], restorer: Restorer, first: int = 0) -> int:
    """Append entries to an empty partition, offset `first` to 0; return their number."""
    appended = 0
    # An archive is read meanwhile, which may be far away: the client of the broker goes on.
    while batch := await asyncio.to_thread(_next_batch, stored):
        posted = [await restorer.post(tp, entry) for entry in batch]
        for entry, offset in zip(batch, await asyncio.gather(*posted), strict=True):
            if offset != entry.offset - first:
                raise BadBackup(f"{tp.key}: offset {entry.offset} was appended at {offset}")
        appended += len(batch)
    return appended


def _next_batch(stored: Iterator[Entry]) -> list[Entry]:
    return list(islice(stored, BATCH))
