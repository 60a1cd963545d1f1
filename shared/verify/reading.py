"""Read topics from their begin, or a mark, to the end that they had when the reading began."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from time import monotonic

import msgspec

from shared.bus.logs.log import Entry, Log
from shared.bus.logs.tail import LedgerTail, TopicTail
from shared.contracts.base import UnknownType
from shared.contracts.codec import decode_command, owner_of
from shared.contracts.node_problems import NodeProblemsReported
from shared.contracts.reports import (
    CheckpointsReported,
    ExecutorReported,
    ProgressReported,
    WorkerReady,
)
from shared.contracts.topics import CUSTODIAN, LOSSY_INPUTS, TOPICS
from shared.ledger import cloudevents
from shared.ledger.inputs import refuse_misplaced
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.ledger.record import Position, next_of
from shared.projections.source import LedgerPartition, ledger_partitions
from shared.verify.anchors import sha256_of
from shared.verify.commands import SentCommand, SentCommands
from shared.verify.event_types import is_public, types_of
from shared.verify.events import PublishedEvents
from shared.verify.marks import NO_MARK, VerifyMark
from shared.verify.poison import RecordPosition, UndecodableRecord
from shared.verify.workers import ReadyWorker

WAIT_S = 0.05
"""Pause before a topic is looked at again for what is due there."""


@dataclass(frozen=True, slots=True)
class InstallationLog:
    """The log of one installation, and how long to wait for it.

    The end offsets of the embedded broker lag: a topic has ended when no record came for `quiet_s`.
    Publisher and projector have `catch_up_s` to reach the end of the ledgers.
    """

    log: Log
    partitions: int
    quiet_s: float = 0.3
    catch_up_s: float = 15.0


async def read_ledgers(
    installation: InstallationLog, cursors: Mapping[LedgerPartition, Cursor] | None = None
) -> AsyncIterator[list[Accepted]]:
    """Yield the accepted records of every ledger behind the cursors, in order within each lane."""
    ledgers: dict[str, list[int]] = {}
    for name, partition in ledger_partitions(installation.partitions):
        ledgers.setdefault(name, []).append(partition)
    starts = {TP(*partition): cursor for partition, cursor in (cursors or {}).items()}
    tail = LedgerTail(installation.log, ledgers, starts)
    await tail.start()
    try:
        while True:
            batch = await tail.poll(installation.quiet_s)
            if not batch and tail.caught_up:
                return
            if batch:
                yield batch
    finally:
        await tail.stop()


async def read_topics(
    installation: InstallationLog,
    names: Iterable[str],
    is_complete: Callable[[], bool] = lambda: True,
    starts: Mapping[TP, int] | None = None,
) -> AsyncIterator[tuple[TP, Entry]]:
    """Yield the records of topics that are not ledgers, in order within each partition.

    Each partition is read from its start, or from its begin if that is later or none is given.
    What comes behind their end is read too until it is complete, or for `catch_up_s`.
    """
    tps = [
        TP(name, partition)
        for name in names
        for partition in range(1 if TOPICS[name].single_partition else installation.partitions)
    ]
    lossy = all(TOPICS[name].retention_ms >= 0 for name in names)
    log, until_s = installation.log, inf
    tail = TopicTail(log, lossy=lossy)
    try:
        await log.start()
        ends = {tp: await log.end(tp) for tp in tps}
        reached = {tp: max(await log.begin(tp), (starts or {}).get(tp, 0)) for tp in tps}
        await tail.start(reached)
        while True:
            polled = await tail.poll(installation.quiet_s)
            if not polled and await _pass_removed(log, reached, ends):
                until_s = min(until_s, monotonic() + installation.catch_up_s)
                if is_complete() or monotonic() >= until_s:
                    return
                await asyncio.sleep(WAIT_S)
            for tp, entries in polled.items():
                for entry in entries:
                    reached[tp] = entry.offset + 1
                    yield tp, entry
    finally:
        await tail.stop()


async def _pass_removed(log: Log, reached: dict[TP, int], ends: Mapping[TP, int]) -> bool:
    """Go on behind records that retention removed meanwhile; return whether all ends are reached.

    Without it a partition that is emptied while it is read would never end.
    """
    for tp, end in ends.items():
        if reached[tp] < end:
            reached[tp] = max(reached[tp], await log.begin(tp))
    return all(reached[tp] >= end for tp, end in ends.items())


@dataclass(slots=True)
class InputRecords:
    """The records of the input topics that are not ledgers."""

    commands: SentCommands = field(default_factory=SentCommands)
    undecodable: dict[RecordPosition, UndecodableRecord] = field(default_factory=dict)
    ready: list[ReadyWorker] = field(default_factory=list)
    records: int = 0
    unread: dict[TP, int] = field(default_factory=dict)
    """First offset of each partition that its service has not read, as far as the run knows."""
    is_unread: set[TP] = field(default_factory=set)
    """Partitions with such a record."""
    last: dict[TP, Entry] = field(default_factory=dict)
    """The last record of each partition."""

    def note(self, tp: TP, offset: int, *, is_read: bool) -> None:
        """Note whether the service has read a record; the next run reads on at the first not."""
        if tp not in self.is_unread:
            self.unread[tp] = offset + is_read
        if not is_read:
            self.is_unread.add(tp)


class Consumption:
    """The positions of each ledger in its inputs, by the input vectors of its accepted records."""

    def __init__(self) -> None:
        self._vectors: dict[LedgerPartition, dict[str, Position]] = {}
        self.seqs: dict[LedgerPartition, int] = {}
        """Ledger partition to its last accepted seq."""
        self.last_public: dict[LedgerPartition, str] = {}
        """Ledger partition to the id of its last public event."""

    def add(self, accepted: Accepted) -> int:
        """Add an accepted record; return the number of its events."""
        types = types_of(accepted.record.ev)
        for index in range(len(types) - 1, -1, -1):
            if is_public(types[index]):
                partition = accepted.ledger, accepted.partition
                self.last_public[partition] = accepted.fact_id(index)
                break
        return len(types)

    def set_cursor(self, partition: LedgerPartition, cursor: Cursor) -> None:
        """Set the input vector and seq at the end of a ledger partition."""
        self._vectors[partition] = cursor.inputs
        self.seqs[partition] = cursor.seq

    def has_read(self, service: str, tp: TP, offset: int) -> bool:
        """Return whether a service has read this offset of an input.

        Lanes are aligned: partition k of a topic is read by partition k of its readers.
        """
        vector = self._vectors.get((service, tp.partition), {})
        return next_of(vector.get(tp.key, 0)) > offset

    def last_seq_read(self, service: str, ledger: str, partition: int) -> int:
        """Return the last accepted seq of one ledger that a service has read."""
        position = self._vectors.get((service, partition), {}).get(f"{ledger}-{partition}", 0)
        return 0 if isinstance(position, int) else position[1]


async def read_inputs(
    installation: InstallationLog, consumption: Consumption, starts: Mapping[TP, int] | None = None
) -> InputRecords:
    """Return every command, ready worker and undecodable record of the input topics."""
    inputs = InputRecords()
    kept = [name for name in CUSTODIAN if name not in LOSSY_INPUTS]
    for names in (kept, sorted(LOSSY_INPUTS)):
        async for tp, entry in read_topics(installation, names, starts=starts):
            inputs.records += 1
            inputs.last[tp] = entry
            add_record(inputs, tp, entry, consumption)
    return inputs


def add_record(inputs: InputRecords, tp: TP, entry: Entry, consumption: Consumption) -> None:
    """Decode a record as its readers do, and add what it is."""
    custodian_has_read = consumption.has_read(CUSTODIAN[tp.topic], tp, entry.offset)
    try:
        event = cloudevents.decode_input(entry.value)
        if event.type == ExecutorReported.TYPE:
            reported = ExecutorReported.model_validate_json(event.body)
            add_ready_workers(inputs, tp, entry, reported)
            inputs.note(tp, entry.offset, is_read=True)
            return
        for soft in (CheckpointsReported, ProgressReported, NodeProblemsReported):
            if event.type == soft.TYPE:
                soft.model_validate_json(event.body)
                inputs.note(tp, entry.offset, is_read=True)
                return
        refuse_misplaced(tp.topic, event.type, owner_of(event.type))
        command = decode_command(event.type, event.body)
    except (cloudevents.Malformed, UnknownType, ValueError):
        inputs.undecodable[tp.topic, tp.partition, entry.offset] = UndecodableRecord(
            tp.topic, tp.partition, entry.offset, sha256_of(entry.value), custodian_has_read
        )
        inputs.note(tp, entry.offset, is_read=custodian_has_read)
        return
    if event.type == "submission.reject.v1":
        payload = msgspec.json.decode(event.body)
        add_rejected_submission(inputs, payload, tp, entry, consumption)
    owner = owner_of(event.type) or ""
    consumed = consumption.has_read(owner, tp, entry.offset)
    of = str(getattr(command, "job_id", ""))
    sent = SentCommand(event.id, event.type, of, _path(tp, entry), consumed)
    inputs.commands.add(sent)
    inputs.note(tp, entry.offset, is_read=consumed)


def add_ready_workers(
    inputs: InputRecords, tp: TP, entry: Entry, reported: ExecutorReported
) -> None:
    inputs.ready += [
        ReadyWorker(report.allocation_id, report.job_id, _path(tp, entry))
        for report in reported.reports
        if isinstance(report, WorkerReady)
    ]


def add_rejected_submission(
    inputs: InputRecords, payload: dict[str, object], tp: TP, entry: Entry, consumption: Consumption
) -> None:
    """Add the record of a tenant's topic that admission rejects at the gateway's request."""
    position = (str(payload["topic"]), int(str(payload["partition"])), int(str(payload["offset"])))
    consumed = consumption.has_read("admission", tp, entry.offset)
    inputs.undecodable[position] = UndecodableRecord(*position, str(payload["sha256"]), consumed)


def _path(tp: TP, entry: Entry) -> str:
    return f"{tp.topic}/{tp.partition}/{entry.offset}"


async def read_published(
    installation: InstallationLog, consumption: Consumption, mark: VerifyMark
) -> PublishedEvents:
    """Return the content of `events` behind the mark.

    It is waited until the publisher has caught up, or for `catch_up_s`.
    """
    due = [event_id for event_id in consumption.last_public.values() if not mark.has(event_id)]
    return await read_events(installation, due, mark)


async def read_events(
    installation: InstallationLog, due: Collection[str] = (), mark: VerifyMark = NO_MARK
) -> PublishedEvents:
    """Return the content of `events` behind the mark; it is waited for the ids that are due."""
    published = PublishedEvents()

    def has_all() -> bool:
        return all(published.type_of(event_id) for event_id in due)

    async for tp, entry in read_topics(installation, ["events"], has_all, mark.topics):
        published.last[tp] = entry
        event = cloudevents.decode(entry.value)
        published.add(event.id, event.type, event.body, is_repeated=mark.has(event.id))
    return published


async def read_dead_letters(installation: InstallationLog) -> dict[RecordPosition, str]:
    """Return the sha256 of the bytes in `dead` by the position of the rejected record."""
    dead: dict[RecordPosition, str] = {}
    async for _, entry in read_topics(installation, ["dead"]):
        headers = {name: value.decode() for name, value in entry.headers}
        partition, offset = int(headers["berth-partition"]), int(headers["berth-offset"])
        dead[headers["berth-topic"], partition, offset] = sha256_of(entry.value)
    return dead
