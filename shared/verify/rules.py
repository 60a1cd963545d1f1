"""What a rule is: it sees every event of every ledger once, then says what was broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from shared.projections.ledger_events import LedgerEvent


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: which rule, where in which log, and what is wrong there."""

    rule: str
    where: str
    what: str


class Rule(Protocol):
    """Lines of one ledger partition come in order; ledgers come one after the other."""

    name: str

    def see(self, line: LedgerEvent) -> None: ...

    def finish(self) -> Iterator[Violation]: ...


def where(line: LedgerEvent) -> str:
    return f"{line.ledger}/{line.position}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Last seq of each ledger partition when the judging began.

    Berth goes on working while it is judged: of what came later only its presence counts.
    """

    seqs: dict[tuple[str, int], int]

    def has(self, line: LedgerEvent) -> bool:
        return line.seq <= self.seqs.get((line.ledger, line.partition), 0)
