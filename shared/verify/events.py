"""`events` holds every public event of every ledger under its id, with the same content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.bus.logs.log import Entry
from shared.ledger.partition import TP
from shared.projections.ledger_events import LedgerEvent
from shared.verify.compared_events import UNKNOWN, ComparedEvents, content_digest
from shared.verify.event_types import is_public
from shared.verify.removed import Removed
from shared.verify.row_store import Figures, RowStore, side_by_side
from shared.verify.rules import Bounds, Violation

TABLE = "events"
REPEATED = "repeated events"
TWO_CONTENTS = "is in events with two contents"


class PublishedEvents:
    """The types and contents in `events` by id; they are kept in a file, as there are millions.

    Repeated are those that a run before has compared.
    """

    def __init__(self) -> None:
        self.rows = RowStore()
        self.conflicting: list[str] = []
        """Ids that `events` holds with two types or contents."""
        self.last: dict[TP, Entry] = {}
        """The last record of each partition."""

    @property
    def next(self) -> dict[TP, int]:
        """First offset of each partition that was not read."""
        return {tp: entry.offset + 1 for tp, entry in self.last.items()}

    def add(self, event_id: str, type_: str, body: bytes, *, is_repeated: bool = False) -> None:
        """Add an event; the first type and content of an id count."""
        table = REPEATED if is_repeated else TABLE
        figures = type_, content_digest(body)
        before = self.rows.get(table, event_id)
        if before is None:
            self.rows.put(table, event_id, figures)
        elif before != figures:
            self.conflicting.append(event_id)

    def type_of(self, event_id: str) -> object:
        """Return the type of an event; None if `events` does not hold it."""
        row = self.rows.get(TABLE, event_id)
        return None if row is None else row[0]


@dataclass(slots=True)
class PublishedEventRule:
    """Events are published at least once: a repeated id is allowed, but not with other content."""

    CARRIED: ClassVar[tuple[str, ...]] = ("pending",)
    LEDGERS: ClassVar[tuple[str, ...]] = ()
    published: PublishedEvents
    bounds: Bounds
    removed: Removed = field(default_factory=Removed)
    name: str = "events hold what the ledgers say"
    kept: RowStore = field(default_factory=RowStore)
    """The events that were compared; see `ComparedEvents`."""
    observed: RowStore = field(default_factory=RowStore)
    """Type of each public event, whether it has to be published by now, whether it may be removed
    again, and its time in ms."""
    pending: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Type and time in ms of each public event that was not published when a run ended, and had
    not to be."""

    def observe(self, event: LedgerEvent) -> None:
        if is_public(event.type):
            self._put(event.id, event.type, event.at, is_due=self.bounds.has(event))

    def _put(self, event_id: str, type_: str, at: int, *, is_due: bool) -> None:
        may_be_removed = self.removed.may_have("events", at)
        self.observed.put(TABLE, event_id, (type_, is_due, may_be_removed, at))

    def finish(self) -> Iterator[Violation]:
        for event_id, (type_, at) in self.pending.items():
            self._put(event_id, type_, at, is_due=True)
        self.pending = {}
        compared = ComparedEvents(self.kept)
        yield from self._compare_repeated(compared)
        both = side_by_side(self.published.rows.rows(TABLE), self.observed.rows(TABLE))
        for event_id, published, observed in both:
            if observed is None:
                yield Violation(self.name, event_id, "is in events but in no ledger")
            elif is_missing(published, observed):
                yield Violation(self.name, event_id, f"{observed[0]} is not in events")
            elif published is None and not observed[1]:
                self.pending[event_id] = str(observed[0]), int(str(observed[3]))
            else:
                content = UNKNOWN if published is None else digest_in(published)
                compared.add(event_id, str(observed[0]), content)
        compared.store()
        for event_id in self.published.conflicting:
            yield Violation(self.name, event_id, TWO_CONTENTS)

    def _compare_repeated(self, compared: ComparedEvents) -> Iterator[Violation]:
        for event_id, published in self.published.rows.rows(REPEATED):
            type_, content = str(published[0]), digest_in(published)
            before = compared.content_of(event_id, type_)
            if before is None:
                detail = "is in events but in no ledger, or there as another type"
                yield Violation(self.name, event_id, detail)
            elif before == UNKNOWN:
                compared.set_content(event_id, type_, content)
            elif before != content and event_id not in self.published.conflicting:
                self.published.conflicting.append(event_id)


def digest_in(published: Figures) -> bytes:
    """Return the digest of the content of a row of `PublishedEvents`."""
    content = published[1]
    assert isinstance(content, bytes)
    return content


def is_missing(published: Figures | None, observed: Figures) -> bool:
    """Return whether `events` lacks an event that it should hold, or has another in its place."""
    type_, is_due, may_be_removed, _ = observed
    if published is None:
        return bool(is_due) and not may_be_removed
    return bool(is_due) and published[0] != type_
