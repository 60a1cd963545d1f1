"""A rule observes every event of every ledger once, then reports its violations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from shared.projections.ledger_events import LedgerEvent


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation of a rule."""

    rule: str
    position: str
    """Ledger event, topic record or row that violates the rule."""
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.position}: {self.detail}"


class Rule(Protocol):
    """Events of one ledger partition come in order; ledgers come in any order."""

    CARRIED: ClassVar[tuple[str, ...]]
    """Fields that a later run needs to go on behind this one, besides the rows that are kept."""
    LEDGERS: ClassVar[tuple[str, ...]]
    """Ledgers whose events it observes; none are all."""
    name: str

    def observe(self, event: LedgerEvent) -> None: ...

    def finish(self) -> Iterator[Violation]: ...


def observers(rules: Iterable[Rule], ledger: str) -> list[Rule]:
    """Return the rules that observe the events of a ledger."""
    return [rule for rule in rules if not rule.LEDGERS or ledger in rule.LEDGERS]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Last seq of each ledger partition when the second pass began.

    Services go on while the rules are checked: a later event counts only as present, so that rules
    do not require its consequences.
    """

    seqs: dict[tuple[str, int], int]

    def has(self, event: LedgerEvent) -> bool:
        """Return whether the event was appended before the second pass began."""
        return self.reach(event.ledger, event.partition, event.seq)

    def reach(self, ledger: str, partition: int, seq: int) -> bool:
        """Return whether the record was appended before the second pass began."""
        return seq <= self.seqs.get((ledger, partition), 0)
