"""`events` holds every public event of every ledger, each under one id, with the same content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.contracts.base import EVENTS
from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Bounds, Violation, where


@dataclass(slots=True)
class EventsRepublished:
    """At least once: a repeated id is fine, another content under the same id is not."""

    published: dict[str, str]
    """Id to type of every CloudEvent in `events`."""
    conflicting: list[str]
    bounds: Bounds
    name: str = "events hold what the ledgers say"
    missing: list[Violation] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def see(self, line: LedgerEvent) -> None:
        cls = EVENTS.get(line.type)
        if cls is None or not cls.PUBLIC:
            return
        name = where(line)
        self.seen.add(name)
        if self.bounds.has(line) and self.published.get(name) != line.type:
            self.missing.append(Violation(self.name, name, f"{line.type} is not in events"))

    def finish(self) -> Iterator[Violation]:
        yield from self.missing
        for name in sorted(self.published.keys() - self.seen):
            yield Violation(self.name, name, "events has what no ledger says")
        for name in self.conflicting:
            yield Violation(self.name, name, "events has two contents under this id")
