"""Reads whole topics from offset 0 to the end they had when the reading began."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import msgspec

from shared.bus.log import Entry, Log
from shared.bus.tail import LedgerTail, TopicTail
from shared.contracts.base import EVENTS, UnknownType
from shared.contracts.codec import decode_command, owner_of
from shared.contracts.reports import ExecutorReported, WorkerReady
from shared.contracts.topics import CUSTODIAN, TOPICS
from shared.ledger import cloudevents
from shared.ledger.inputs import refuse_misplaced
from shared.ledger.partition import TP
from shared.ledger.reader import Accepted, Cursor
from shared.ledger.record import Position, next_of
from shared.projections.source import cursor_after, ledger_partitions
from shared.verify.commands import Asked, Poison
from shared.verify.workers import MadeReady

__all__ = ["Asks", "Consumption", "cursor_after", "asks", "dead_letters", "ledgers", "published"]


@dataclass(frozen=True, slots=True)
class InstallationLog:
    """The logs of one installation, and how patiently they are read.

    The embedded broker's end offsets lag: a topic has ended when it was silent for `quiet_s`.
    Publisher and projector get `patience_s` to catch up.
    """

    log: Log
    partitions: int
    quiet_s: float = 0.3
    patience_s: float = 15.0


async def ledgers(logs: InstallationLog) -> AsyncIterator[list[Accepted]]:
    """Every accepted record of every ledger, in order within each partition."""
    wanted: dict[str, list[int]] = {}
    for name, partition in ledger_partitions(logs.partitions):
        wanted.setdefault(name, []).append(partition)
    tail = LedgerTail(logs.log, wanted)
    await tail.start()
    try:
        while True:
            batch = await tail.poll(logs.quiet_s)
            if not batch and tail.caught_up:
                return
            if batch:
                yield batch
    finally:
        await tail.stop()


async def topics(logs: InstallationLog, names: Iterable[str]) -> AsyncIterator[tuple[TP, Entry]]:
    """Every record of these plain topics, in order within each partition."""
    tps = [
        TP(name, partition)
        for name in names
        for partition in range(1 if TOPICS[name].single_partition else logs.partitions)
    ]
    tail = TopicTail(logs.log, lossy=all(TOPICS[name].kind == "public" for name in names))
    await tail.start_at_begin(tps)
    ends = {tp: await logs.log.end(tp) for tp in tps}
    reached = dict.fromkeys(tps, 0)
    try:
        while True:
            found = await tail.poll(logs.quiet_s)
            if not found and all(reached[tp] >= ends[tp] for tp in tps):
                return
            for tp, entries in found.items():
                for entry in entries:
                    reached[tp] = entry.offset + 1
                    yield tp, entry
    finally:
        await tail.stop()


@dataclass(slots=True)
class Asks:
    """What lies in the ledgered plain topics."""

    asked: dict[str, Asked] = field(default_factory=dict)
    poison: dict[tuple[str, int, int], Poison] = field(default_factory=dict)
    ready: list[MadeReady] = field(default_factory=list)
    records: int = 0


class Consumption:
    """How far each ledger has read its inputs, by the vectors of its accepted records."""

    def __init__(self) -> None:
        self._vectors: dict[tuple[str, int], dict[str, Position]] = {}
        self.seqs: dict[tuple[str, int], int] = {}
        """Ledger partition to its last accepted seq."""
        self.last_public: dict[tuple[str, int], str] = {}
        """Ledger partition to the id of its last public event."""

    def saw(self, accepted: Accepted) -> int:
        """Number of events in the record."""
        events = list(accepted.raw())
        for event in events:
            cls = EVENTS.get(event.type)
            if cls is not None and cls.PUBLIC:
                place = accepted.ledger, accepted.partition
                self.last_public[place] = accepted.fact_id(event.index)
        return len(events)

    def note(self, name: str, partition: int, cursor: Cursor) -> None:
        self._vectors[name, partition] = cursor.inputs
        self.seqs[name, partition] = cursor.seq

    def has_read(self, service: str, tp: TP, offset: int) -> bool:
        """Lanes are aligned: partition k of a topic is read by partition k of its readers."""
        vector = self._vectors.get((service, tp.partition), {})
        return next_of(vector.get(tp.key, 0)) > offset

    def seq_read(self, service: str, ledger_name: str, partition: int) -> int:
        """Last accepted seq of one ledger that another has read."""
        position = self._vectors.get((service, partition), {}).get(f"{ledger_name}-{partition}", 0)
        return 0 if isinstance(position, int) else position[1]


async def asks(logs: InstallationLog, consumption: Consumption) -> Asks:
    """Every command and every undecodable record of the topics that somebody answers for."""
    found = Asks()
    async for tp, entry in topics(logs, list(CUSTODIAN)):
        found.records += 1
        judge(found, tp, entry, consumption)
    return found


def judge(found: Asks, tp: TP, entry: Entry, consumption: Consumption) -> None:
    try:
        event = cloudevents.decode_input(entry.value)
        if event.type == ExecutorReported.TYPE:
            reported(found, tp, entry, ExecutorReported.model_validate_json(event.body))
            return
        refuse_misplaced(tp.topic, event.type, owner_of(event.type))
        command = decode_command(event.type, event.body)
    except (cloudevents.Malformed, UnknownType, ValueError):
        found.poison[tp.topic, tp.partition, entry.offset] = Poison(
            tp.topic,
            tp.partition,
            entry.offset,
            digest(entry.value),
            consumption.has_read(CUSTODIAN[tp.topic], tp, entry.offset),
        )
        return
    if event.type == "submission.reject.v1":
        forwarded(found, msgspec.json.decode(event.body), tp, entry, consumption)
    owner = owner_of(event.type) or ""
    consumed = consumption.has_read(owner, tp, entry.offset)
    of = str(getattr(command, "job_id", ""))
    spot = f"{tp.topic}/{tp.partition}/{entry.offset}"
    found.asked.setdefault(event.id, Asked(event.id, event.type, of, spot, consumed))


def reported(found: Asks, tp: TP, entry: Entry, said: ExecutorReported) -> None:
    spot = f"{tp.topic}/{tp.partition}/{entry.offset}"
    found.ready += [
        MadeReady(each.allocation_id, each.job_id, spot)
        for each in said.reports
        if isinstance(each, WorkerReady)
    ]


def forwarded(
    found: Asks, data: dict[str, object], tp: TP, entry: Entry, consumption: Consumption
) -> None:
    """The gateway met it in a tenant's topic and asked admission to reject it."""
    place = (str(data["topic"]), int(str(data["partition"])), int(str(data["offset"])))
    consumed = consumption.has_read("admission", tp, entry.offset)
    found.poison[place] = Poison(*place, str(data["sha256"]), consumed)


def digest(value: bytes | None) -> str:
    return hashlib.sha256(value or b"").hexdigest()


async def published(
    logs: InstallationLog, consumption: Consumption
) -> tuple[dict[str, str], list[str]]:
    """What lies in `events` once the publisher has caught up, or has had its time to."""
    due = set(consumption.last_public.values())
    found = await all_events(logs)
    for _ in range(int(logs.patience_s)):
        if found[0].keys() >= due:
            break
        await asyncio.sleep(1.0)
        found = await all_events(logs)
    return found


async def all_events(logs: InstallationLog) -> tuple[dict[str, str], list[str]]:
    """Ids and types in `events`, and the ids that stand there with two contents."""
    ids: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    conflicting: list[str] = []
    async for _, entry in topics(logs, ["events"]):
        event = cloudevents.decode(entry.value)
        content = hashlib.blake2b(event.body, digest_size=8).digest()
        if contents.setdefault(event.id, content) != content:
            conflicting.append(event.id)
        ids[event.id] = event.type
    return ids, conflicting


async def dead_letters(logs: InstallationLog) -> dict[tuple[str, int, int], str]:
    """Where each dead letter came from, and the sha256 of the bytes that lie in `dead`."""
    found: dict[tuple[str, int, int], str] = {}
    async for _, entry in topics(logs, ["dead"]):
        told = {name: value.decode() for name, value in entry.headers}
        place = told["berth-topic"], int(told["berth-partition"]), int(told["berth-offset"])
        found[place] = digest(entry.value)
    return found
