"""Undecodable records are rejected once; inputs on which a decider raised are open or decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.projections.ledger_events import LedgerEvent
from shared.verify.removed import Removed
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds, Violation

REJECTED = "rejected record"
SETTLED = ("input.retry-requested.v1", "input.skipped.v1")
"""Events that close a quarantined input; a retry that raised leaves another one open."""

RecordPosition = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class UndecodableRecord:
    """A record that is not a valid message, or a submission that the gateway could not read."""

    topic: str
    partition: int
    offset: int
    sha256: str
    consumed: bool
    """The service that must reject it has read this offset."""

    @property
    def position(self) -> RecordPosition:
        return self.topic, self.partition, self.offset


@dataclass(slots=True)
class DeadLetterRule:
    """The topic `dead` holds each rejected record at least once, and nothing else."""

    CARRIED: ClassVar[tuple[str, ...]] = ("rejected",)
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    undecodable: dict[RecordPosition, UndecodableRecord]
    dead: dict[RecordPosition, str]
    """Position of each dead letter's record to the sha256 of the bytes in `dead`."""
    bounds: Bounds
    removed: Removed = field(default_factory=Removed)
    name: str = "dead letters equal what was rejected"
    kept: RowStore = field(default_factory=RowStore)
    """How often each record was rejected."""
    rejected: dict[RecordPosition, LedgerEvent] = field(default_factory=dict)
    """First rejections that were not checked yet."""

    def observe(self, event: LedgerEvent) -> None:
        if event.type == "input.rejected.v1":
            data = event.data
            position = (data["topic"], data["partition"], data["offset"])
            rejections = self._rejections(position) + 1
            self.kept.put(REJECTED, _path(position), (rejections,))
            self.rejected.setdefault(position, event)

    def _rejections(self, position: RecordPosition) -> int:
        row = self.kept.get(REJECTED, _path(position))
        return 0 if row is None else int(str(row[0]))

    def finish(self) -> Iterator[Violation]:
        for position, rejection in list(self.rejected.items()):
            if self.bounds.has(rejection):
                del self.rejected[position]
                yield from self._check(position, rejection)
        for position, record in self.undecodable.items():
            if record.consumed and not self._rejections(position):
                yield self._at(position, "was consumed and not rejected")
        for position in self.dead:
            if not self._rejections(position):
                yield self._at(position, "is in the topic dead but was not rejected")

    def _check(self, position: RecordPosition, rejection: LedgerEvent) -> Iterator[Violation]:
        path, rejections = _path(position), self._rejections(position)
        if rejections > 1:
            yield self._at(position, f"was rejected {rejections} times")
        if self.removed.has(*position):
            return
        if position not in self.undecodable:
            yield Violation(self.name, rejection.id, f"{path} is a valid record")
        elif rejection.data["sha256"] != self.undecodable[position].sha256:
            yield Violation(self.name, rejection.id, f"{path} has another sha256")
        is_gone = position not in self.dead and self.removed.may_have("dead", rejection.at)
        if self.dead.get(position) != rejection.data["sha256"] and not is_gone:
            yield self._at(position, "is not in the topic dead, or with other bytes")

    def _at(self, position: RecordPosition, detail: str) -> Violation:
        return Violation(self.name, _path(position), detail)


@dataclass(slots=True)
class QuarantineRule:
    """Inputs on which a decider raised: open until an operator has decided on them, never red."""

    CARRIED: ClassVar[tuple[str, ...]] = ("quarantined", "settled")
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    name: str = "no input is quarantined"
    quarantined: dict[str, LedgerEvent] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def observe(self, event: LedgerEvent) -> None:
        if event.type == "input.quarantined.v1":
            self.quarantined[event.id] = event
        elif event.type in SETTLED:
            self.settled.add(event.data["input_id"])

    def finish(self) -> Iterator[Violation]:
        yield from ()

    def open(self) -> Iterator[Violation]:
        """Yield each input that still waits for an operator."""
        for event_id, event in self.quarantined.items():
            if event_id in self.settled:
                continue
            data = event.data
            place = _path((data["topic"], data["partition"], data["offset"]))
            yield Violation(self.name, event_id, f"{place} is open: {data['reason']}")


def _path(position: RecordPosition) -> str:
    return "{}/{}/{}".format(*position)
