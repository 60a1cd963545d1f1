"""Copy the log while it is written to, with every record that the copied ledgers refer to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from shared.backup.files import (
    FORMAT,
    FORMAT_OF_TAILS,
    BackupManifest,
    BadBackup,
    PartWriter,
    finish,
)
from shared.backup.tails import with_archived
from shared.bus.archive.chain import Chain
from shared.bus.logs.log import Entry, Log
from shared.contracts.topics import LEDGERS, LOSSY_INPUTS, TOPICS, submissions
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.ledger.record import next_of

WAIT_S = 1.0
SILENT_POLLS = 30
"""Polls without a record after which the log counts as broken: due records are acknowledged."""
NO_CHAINS: Mapping[TP, Chain] = MappingProxyType({})


def saved_topics(partitions: int, tenants: Iterable[str]) -> dict[str, int]:
    """Return topics that cannot be rebuilt, with their partitions: ledgers, inputs, submissions."""
    lasting = [spec for spec in TOPICS.values() if spec.kind in ("ledger", "ledgered")]
    topics = {spec.name: 1 if spec.single_partition else partitions for spec in lasting}
    return topics | {submissions(tenant).name: partitions for tenant in tenants}


async def save(
    log: Log,
    topics: Mapping[str, int],
    partitions: int,
    folder: Path,
    chains: Mapping[TP, Chain] = NO_CHAINS,
) -> BackupManifest:
    """Write a backup into `folder`, which must be new or empty; return its manifest.

    Of the partitions with `chains` of an archive only what follows their last entries is copied.

    Each partition is copied to the end that it had at the beginning, and further until no copied
    ledger record refers to an input offset beyond the copy. The inputs of a record were appended
    before it, so this terminates however busy the log is.

    Raises BadBackup for a folder in use, a ledger or input without its beginning, and a log that
    ends before an offset that it refers to.
    """
    _prepare(folder)
    await log.start()
    try:
        begins, until = await _bounds(log, topics, chains)
        with ExitStack() as files:
            writers = {
                tp: files.enter_context(PartWriter(folder, tp, first))
                for tp, first in begins.items()
            }
            await _copy(log, writers, until, chains)
    finally:
        await log.stop()
    parts = tuple(
        with_archived(writer.part(), chains.get(tp)) for tp, writer in sorted(writers.items())
    )
    has_tails = any(part.archived for part in parts)
    form = FORMAT_OF_TAILS if has_tails else FORMAT
    manifest = BackupManifest(format=form, partitions=partitions, parts=parts)
    finish(folder, manifest)
    return manifest


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(folder.iterdir()):
        raise BadBackup(f"{folder}: not empty; a backup needs a new or empty folder")


async def _bounds(
    log: Log, topics: Mapping[str, int], chains: Mapping[TP, Chain]
) -> tuple[dict[TP, int], dict[TP, int]]:
    begins: dict[TP, int] = {}
    ends: dict[TP, int] = {}
    for tp in (TP(name, lane) for name, count in topics.items() for lane in range(count)):
        begins[tp], ends[tp] = await log.begin(tp), await log.end(tp)
        if chain := chains.get(tp):
            if ends[tp] < chain.next:
                raise BadBackup(f"{tp.key}: ends at {ends[tp]}, and its archive at {chain.next}")
            begins[tp] = chain.next
            continue
        if begins[tp] and tp.topic in TOPICS and tp.topic not in LOSSY_INPUTS:
            raise BadBackup(f"{tp.key}: begins at {begins[tp]}; its first records are deleted")
    return begins, ends


async def _copy(
    log: Log, writers: Mapping[TP, PartWriter], until: dict[TP, int], chains: Mapping[TP, Chain]
) -> None:
    """Copy all partitions up to `until`, which grows with the references of ledger records."""
    names = {tp.key: tp for tp in writers}
    cursors = {tp: chain.cursor for tp, chain in chains.items()}
    readers = {tp: Reader(*tp, cursors.get(tp)) for tp in writers if tp.topic in LEDGERS}
    while due := {tp: w.next for tp, w in writers.items() if w.next < until[tp]}:
        # Offsets that become due while this feed reads are left to the next feed.
        ends = {tp: until[tp] for tp in due}
        async for tp, entry in _until(log, due, ends):
            writers[tp].add(entry)
            for name, end in _input_ends(readers.get(tp), entry).items():
                source = names[name]
                until[source] = max(until[source], end)


async def _until(
    log: Log, starts: Mapping[TP, int], ends: Mapping[TP, int]
) -> AsyncIterator[tuple[TP, Entry]]:
    reached = dict(starts)
    silent = 0
    feed = await log.feed(starts)
    try:
        while short := [tp for tp, end in ends.items() if reached[tp] < end]:
            polled = await feed.poll(WAIT_S)
            silent = 0 if polled else silent + 1
            if silent > SILENT_POLLS:
                tp = short[0]
                raise BadBackup(f"{tp.key}: ends at {reached[tp]}; a ledger refers to {ends[tp]}")
            for tp, entries in polled.items():
                for entry in entries[: max(0, ends[tp] - reached[tp])]:
                    reached[tp] = entry.offset + 1
                    yield tp, entry
    finally:
        await feed.close()


def _input_ends(reader: Reader | None, entry: Entry) -> dict[str, int]:
    """Return the end that each input must have for this record, if it is accepted."""
    accepted = reader.offer(entry.offset, entry.value) if reader else None
    inputs = accepted.record.inputs if accepted else {}
    return {name: next_of(position) for name, position in inputs.items()}
