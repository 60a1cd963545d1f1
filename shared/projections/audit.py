"""`audit`: the actions of principals and the refused requests; keys and tokens by id only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import BigInt, RowTable

NOT_AUDITED = frozenset({"job.submit.v1", "llm.serve.v1"})
"""Commands of a tenant's normal use, which its own read models show."""
ATTEMPTS = "attempts.refused.v1"
CANCELS = frozenset({"job.cancel-requested.v1", "array.cancel-requested.v1"})


@dataclass(slots=True)
class AuditRow:
    """One action; `outcome` is accepted, refused, or requested (for a cancel of a running job)."""

    entry_id: str
    at: BigInt
    principal: str
    action: str
    object: str
    whose: str
    outcome: str
    reason: str
    requests: int


AUDIT = RowTable("audit", AuditRow, "entry_id")


def audit_rows(event: LedgerEvent) -> Iterator[AuditRow]:
    """Yield the rows of an event; none for an event without a principal."""
    data = event.data
    if event.type == ATTEMPTS:
        yield from _attempt_rows(event)
    elif (principal := data.get("principal")) and data.get("command_type") not in NOT_AUDITED:
        is_cancel = event.type in CANCELS
        outcome = "accepted" if event.type == "command.accepted.v1" else "refused"
        yield AuditRow(
            entry_id=event.id,
            at=event.at,
            principal=principal,
            action="job.cancel.v1" if is_cancel else data["command_type"],
            object=data["job_id"] if is_cancel else data.get("of", ""),
            whose=data.get("tenant", ""),
            outcome="requested" if is_cancel else outcome,
            reason=data.get("reason", ""),
            requests=1,
        )


def _attempt_rows(event: LedgerEvent) -> Iterator[AuditRow]:
    for index, attempt in enumerate(event.data["attempts"]):
        yield AuditRow(
            entry_id=f"{event.id}/{index}",
            at=event.at,
            principal=attempt.get("principal", ""),
            action=attempt.get("action", ""),
            object="",
            whose="",
            outcome="refused",
            reason="unauthenticated" if attempt["status"] == 401 else "forbidden",
            requests=attempt["requests"],
        )
