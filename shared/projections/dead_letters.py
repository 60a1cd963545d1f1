"""`dead_letter`: records that could not be decoded, and quarantined inputs with their decisions."""

from __future__ import annotations

from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import BigInt, RowTable

QUARANTINED = "input.quarantined.v1"
RECORDED = frozenset({"input.rejected.v1", QUARANTINED})
RETRIED = "input.retried.v1"
DECISIONS = {"input.retry-requested.v1": "retry", "input.skipped.v1": "skip"}
"""Type of an event of access to the decision of an operator."""
EVENTS = RECORDED | {RETRIED} | frozenset(DECISIONS)
STATE_OF_OUTCOME = {"decided": "retried", "raised": "raised_again", "not_retained": "not_retained"}


@dataclass(slots=True)
class DeadLetterRow:
    """A rejected record or a quarantined input: position, reason, sha256 of the bytes, state.

    The decision of an operator comes from access, the rest from the ledger of the input: a row
    without topic has a decision whose input is not projected yet, or never was quarantined.
    `state` is `rejected`, `open`, `skipped`, `retrying`, or the end of a retry.
    """

    dead_id: str
    ledger: str = ""
    topic: str = ""
    partition: int = 0
    log_offset: BigInt = 0
    reason: str = ""
    sha256: str = ""
    tenant: str = ""
    at: BigInt = 0
    message_id: str = ""
    message_type: str = ""
    is_quarantined: bool = False
    decision: str = ""
    decision_reason: str = ""
    decided_at: BigInt = 0
    outcome: str = ""
    state: str = ""
    settled: bool = False


DEAD_LETTER = RowTable("dead_letter", DeadLetterRow, "dead_id")


def dead_id_of(event: LedgerEvent) -> str:
    """Return the id of the rejection or quarantine that an event is about."""
    return event.id if event.type in RECORDED else str(event.data["input_id"])


def fold_dead_letter(row: DeadLetterRow, event: LedgerEvent) -> None:
    data = event.data
    if event.type in RECORDED:
        _record(row, event)
    elif event.type == RETRIED:
        row.outcome = data["outcome"]
    else:
        row.decision, row.decided_at = DECISIONS[event.type], event.at
        row.decision_reason = data.get("reason", "")
    row.state = state_of(row)
    row.settled = row.state not in ("rejected", "open", "retrying")


def _record(row: DeadLetterRow, event: LedgerEvent) -> None:
    data = event.data
    row.is_quarantined = event.type == QUARANTINED
    row.ledger, row.at = event.ledger, event.at
    row.topic, row.partition, row.log_offset = data["topic"], data["partition"], data["offset"]
    row.reason, row.sha256, row.tenant = data["reason"], data["sha256"], data.get("tenant", "")
    row.message_id, row.message_type = data.get("message_id", ""), data.get("message_type", "")


def state_of(row: DeadLetterRow) -> str:
    """Return the state that follows from the other columns, in any order of the ledgers."""
    if row.topic and not row.is_quarantined:
        return "rejected"
    if row.decision == "skip":
        return "skipped"
    if row.outcome:
        return STATE_OF_OUTCOME.get(row.outcome, row.outcome)
    return "retrying" if row.decision == "retry" else "open"
