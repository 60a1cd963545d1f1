"""Copy the log while it is written to, so that the copy refers to nothing that it lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

from shared.backup.files import BadBackup, Manifest, Writer, finish
from shared.bus.log import Entry, Log
from shared.contracts.topics import LEDGERS, TOPICS, submissions
from shared.ledger.partition import TP
from shared.ledger.reader import Reader
from shared.ledger.record import next_of

WAIT_S = 1.0
SILENT_POLLS = 30
"""Polls without a record after which a log is held for broken: what is due was acknowledged."""


def kept_topics(partitions: int, tenants: Iterable[str]) -> dict[str, int]:
    """Partitions by topic of all that cannot be made anew: ledgers, their inputs, submissions."""
    lasting = [spec for spec in TOPICS.values() if spec.kind in ("ledger", "ledgered")]
    found = {spec.name: 1 if spec.single_partition else partitions for spec in lasting}
    return found | {submissions(tenant).name: partitions for tenant in tenants}


async def save(log: Log, topics: Mapping[str, int], partitions: int, folder: Path) -> Manifest:
    """Write a backup into `folder`, which must be new or empty; returns its manifest.

    Each partition is copied to the end that it had at the beginning, and further, until no copied
    ledger record names an input offset beyond the copy: a record's inputs were in the log before
    it was, so this comes to an end however busy the log is.

    Raises BadBackup for a folder in use, for a ledger or input whose beginning is gone, and for a
    log that ends before what it refers to.
    """
    _empty(folder)
    await log.start()
    try:
        begins, wanted = await _bounds(log, topics)
        with ExitStack() as files:
            writers = {
                tp: files.enter_context(Writer(folder, tp, first)) for tp, first in begins.items()
            }
            await _copy(log, writers, wanted)
    finally:
        await log.stop()
    parts = tuple(writer.part() for _, writer in sorted(writers.items()))
    manifest = Manifest(partitions=partitions, parts=parts)
    finish(folder, manifest)
    return manifest


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(folder.iterdir()):
        raise BadBackup(f"{folder}: not empty; a backup wants a folder of its own")


async def _bounds(log: Log, topics: Mapping[str, int]) -> tuple[dict[TP, int], dict[TP, int]]:
    begins: dict[TP, int] = {}
    ends: dict[TP, int] = {}
    for tp in (TP(name, lane) for name, count in topics.items() for lane in range(count)):
        begins[tp], ends[tp] = await log.begin(tp), await log.end(tp)
        if begins[tp] and tp.topic in TOPICS:
            raise BadBackup(f"{tp.key}: begins at {begins[tp]}: its beginning is gone")
    return begins, ends


async def _copy(log: Log, writers: Mapping[TP, Writer], wanted: dict[TP, int]) -> None:
    names = {tp.key: tp for tp in writers}
    readers = {tp: Reader(*tp) for tp in writers if tp.topic in LEDGERS}
    while due := {tp: w.next for tp, w in writers.items() if w.next < wanted[tp]}:
        # What is asked for while this feed reads is for the next one, which begins where it ends.
        ends = {tp: wanted[tp] for tp in due}
        async for tp, entry in _until(log, due, ends):
            writers[tp].add(entry)
            for name, least in _refers_to(readers.get(tp), entry).items():
                source = names[name]
                wanted[source] = max(wanted[source], least)


async def _until(
    log: Log, starts: Mapping[TP, int], ends: Mapping[TP, int]
) -> AsyncIterator[tuple[TP, Entry]]:
    reached = dict(starts)
    silent = 0
    feed = await log.feed(starts)
    try:
        while short := [tp for tp, end in ends.items() if reached[tp] < end]:
            found = await feed.poll(WAIT_S)
            silent = 0 if found else silent + 1
            if silent > SILENT_POLLS:
                tp = short[0]
                raise BadBackup(f"{tp.key} ends at {reached[tp]}, but {ends[tp]} is referred to")
            for tp, entries in found.items():
                for entry in entries[: max(0, ends[tp] - reached[tp])]:
                    reached[tp] = entry.offset + 1
                    yield tp, entry
    finally:
        await feed.close()


def _refers_to(reader: Reader | None, entry: Entry) -> dict[str, int]:
    """How far each input must reach for this record, if it is one that counts."""
    accepted = reader.offer(entry.offset, entry.value) if reader else None
    inputs = accepted.record.inputs if accepted else {}
    return {name: next_of(position) for name, position in inputs.items()}
