"""`command` holds the answer to every command, `dead_letter` every undecodable record."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import BigInt, RowTable


@dataclass(slots=True)
class CommandRow:
    """The answer to one command; `answers` above 1 is a bug, which `berth verify` reports."""

    command_id: str
    ledger: str = ""
    partition: int = 0
    type: str = ""
    of: str = ""
    tenant: str = ""
    accepted: bool = False
    duplicate: bool = False
    reason: str = ""
    detail: str = ""
    answers: int = 0
    at: BigInt = 0


@dataclass(slots=True)
class DeadLetterRow:
    """A rejected record: its position in the input, the reason and the sha256 of its bytes."""

    dead_id: str
    ledger: str
    topic: str
    partition: int
    log_offset: BigInt
    reason: str
    sha256: str
    tenant: str
    at: BigInt


COMMAND = RowTable("command", CommandRow, "command_id")
DEAD_LETTER = RowTable("dead_letter", DeadLetterRow, "dead_id")


def fold_answer(row: CommandRow, event: LedgerEvent) -> None:
    data = event.data
    row.ledger, row.partition, row.at = event.ledger, event.partition, event.at
    row.type, row.of, row.tenant = data["command_type"], data.get("of", ""), data.get("tenant", "")
    row.accepted = event.type == "command.accepted.v1"
    row.duplicate = data.get("duplicate", False)
    row.reason, row.detail = data.get("reason", ""), data.get("detail", "")
    row.answers += 1


def dead_letter_row(event: LedgerEvent) -> DeadLetterRow:
    """Return the row of one InputRejected or InputQuarantined."""
    data = event.data
    aside = "set aside: " if event.type == "input.quarantined.v1" else ""
    return DeadLetterRow(
        dead_id=event.id,
        ledger=event.ledger,
        topic=data["topic"],
        partition=data["partition"],
        log_offset=data["offset"],
        reason=aside + data["reason"],
        sha256=data["sha256"],
        tenant=data.get("tenant", ""),
        at=event.at,
    )
