"""`command` holds the answer to every command, `dead_letter` what nobody could read."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable


@dataclass(slots=True)
class Answer:
    """`answers` counts how often a command was answered: more than 1 is a bug that verify finds."""

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
    at: int = 0


@dataclass(slots=True)
class DeadLetter:
    dead_id: str
    ledger: str
    topic: str
    partition: int
    log_offset: int
    reason: str
    sha256: str
    tenant: str
    at: int


COMMAND = RowTable(
    "command",
    Answer,
    "command_id",
    {
        "command_id": "text",
        "ledger": "text",
        "partition": "int",
        "type": "text",
        "of": "text",
        "tenant": "text",
        "accepted": "bool",
        "duplicate": "bool",
        "reason": "text",
        "detail": "text",
        "answers": "int",
        "at": "bigint",
    },
)
DEAD = RowTable(
    "dead_letter",
    DeadLetter,
    "dead_id",
    {
        "dead_id": "text",
        "ledger": "text",
        "topic": "text",
        "partition": "int",
        "log_offset": "bigint",
        "reason": "text",
        "sha256": "text",
        "tenant": "text",
        "at": "bigint",
    },
)


def fold_answer(row: Answer, line: LedgerEvent) -> None:
    data = line.data
    row.ledger, row.partition, row.at = line.ledger, line.partition, line.at
    row.type, row.of, row.tenant = data["command_type"], data.get("of", ""), data.get("tenant", "")
    row.accepted = line.type == "command.accepted.v1"
    row.duplicate = data.get("duplicate", False)
    row.reason, row.detail = data.get("reason", ""), data.get("detail", "")
    row.answers += 1


def dead_letter(line: LedgerEvent) -> DeadLetter:
    data = line.data
    return DeadLetter(
        dead_id=f"{line.ledger}/{line.position}",
        ledger=line.ledger,
        topic=data["topic"],
        partition=data["partition"],
        log_offset=data["offset"],
        reason=data["reason"],
        sha256=data["sha256"],
        tenant=data.get("tenant", ""),
        at=line.at,
    )
