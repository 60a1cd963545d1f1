"""`command` holds the answer to every command."""

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
    principal: str = ""
    """The key, token or Kafka user that sent it; empty if it is not known."""


COMMAND = RowTable("command", CommandRow, "command_id")


def fold_answer(row: CommandRow, event: LedgerEvent) -> None:
    data = event.data
    row.ledger, row.partition, row.at = event.ledger, event.partition, event.at
    row.type, row.of, row.tenant = data["command_type"], data.get("of", ""), data.get("tenant", "")
    row.accepted = event.type == "command.accepted.v1"
    row.duplicate = data.get("duplicate", False)
    row.reason, row.detail = data.get("reason", ""), data.get("detail", "")
    row.principal = data.get("principal") or ""
    row.answers += 1
