"""The report of a verification, and checks of positions, which belong to no rule of events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from shared.contracts.topics import ARCHIVED, INPUTS
from shared.ledger.partition import TP
from shared.ledger.reader import Cursor
from shared.projections.source import LedgerPartition
from shared.verify.reading import InputRecords
from shared.verify.rules import Violation

CHAIN = "the chain of accepted records is whole"
ACKED = "what was acknowledged is in its topic"


@dataclass(slots=True)
class VerifyReport:
    """Violations, figures and names of the checked rules; green without violations.

    `open` are inputs that wait for an operator: a task, no violation. `since_ms` is the time of the
    run of which the mark was used, 0 for none: what came before it was not read again.
    """

    violations: list[Violation] = field(default_factory=list)
    open: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rules: list[str] = field(default_factory=list)
    since_ms: int = 0

    @property
    def ok(self) -> bool:
        return not self.violations


def check_time(
    report: VerifyReport, partition: LedgerPartition, previous_ms: int, at_ms: int
) -> None:
    """Times of a ledger partition never decrease."""
    if at_ms < previous_ms:
        position = f"{partition[0]}/{partition[1]}"
        detail = f"time went back from {previous_ms} to {at_ms}"
        report.violations.append(Violation(CHAIN, position, detail))


def check_inputs(report: VerifyReport, partition: LedgerPartition, cursor: Cursor) -> None:
    """Check that the ledger read only the declared inputs of its service."""
    ledger, lane = partition
    declared = {f"{topic}-{lane}" for topic in INPUTS[ledger]} | {"access-0"}
    for key in cursor.inputs.keys() - declared:
        report.violations.append(Violation(CHAIN, f"{ledger}/{lane}", f"undeclared input {key}"))


def check_acked(report: VerifyReport, acked: Collection[str], inputs: InputRecords) -> None:
    """Check that every acknowledged command is in its topic."""
    if acked or any(violation.rule == ACKED for violation in report.violations):
        report.rules.append(ACKED)
    for command_id in acked:
        if command_id not in inputs.commands:
            detail = "was acknowledged and is lost"
            report.violations.append(Violation(ACKED, command_id, detail))


def check_changed(report: VerifyReport, changed: Iterable[TP]) -> None:
    """Check that no topic without retention has lost records that an earlier run has read."""
    for tp in changed:
        if tp.topic in ARCHIVED:
            detail = "lacks the last record that an earlier run has read: tail lost"
            report.violations.append(Violation(ACKED, tp.key, detail))
