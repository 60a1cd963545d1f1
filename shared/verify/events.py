"""`events` holds every public event of every ledger under its id, with the same content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.base import EVENTS
from shared.projections.ledger_events import LedgerEvent
from shared.verify.removed import Removed
from shared.verify.rules import Bounds, Violation


@dataclass(slots=True)
class PublishedEventRule:
    """Events are published at least once: a repeated id is allowed, but not with other content."""

    published: dict[str, str]
    """Id to type of every CloudEvent in `events`."""
    conflicting: list[str]
    """Ids that `events` holds with two contents."""
    bounds: Bounds
    removed: Removed = field(default_factory=Removed)
    name: str = "events hold what the ledgers say"
    missing: list[Violation] = field(default_factory=list)
    observed: set[str] = field(default_factory=set)

    def observe(self, event: LedgerEvent) -> None:
        cls = EVENTS.get(event.type)
        if cls is None or not cls.PUBLIC:
            return
        self.observed.add(event.id)
        if not self.bounds.has(event) or self.published.get(event.id) == event.type:
            return
        if event.id in self.published or not self.removed.may_have("events", event.at):
            self.missing.append(Violation(self.name, event.id, f"{event.type} is not in events"))

    def finish(self) -> Iterator[Violation]:
        yield from self.missing
        for event_id in sorted(self.published.keys() - self.observed):
            yield Violation(self.name, event_id, "is in events but in no ledger")
        for event_id in self.conflicting:
            yield Violation(self.name, event_id, "is in events with two contents")
