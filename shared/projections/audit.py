"""`audit`: who did what, and who was turned away; a key or token by its id, never a secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.projections.ledger_events import LedgerEvent
from shared.projections.table import RowTable

UNREMARKABLE = frozenset({"job.submit.v1", "llm.serve.v1"})
"""A tenant's daily work: its own read models tell of it."""
ATTEMPTS = "attempts.refused.v1"
CANCELS = frozenset({"job.cancel-requested.v1", "array.cancel-requested.v1"})


@dataclass(slots=True)
class Entry:
    """`outcome` is accepted, refused, or requested: a cancel is answered when its job has ended."""

    entry_id: str
    at: int
    principal: str
    action: str
    object: str
    whose: str
    outcome: str
    reason: str
    requests: int


AUDIT = RowTable(
    "audit",
    Entry,
    "entry_id",
    {
        "entry_id": "text",
        "at": "bigint",
        "principal": "text",
        "action": "text",
        "object": "text",
        "whose": "text",
        "outcome": "text",
        "reason": "text",
        "requests": "int",
    },
)


def entries_of(line: LedgerEvent) -> Iterator[Entry]:
    """Nothing for events that nobody in particular asked for."""
    data = line.data
    if line.type == ATTEMPTS:
        yield from _attempts(line)
    elif (principal := data.get("principal")) and data.get("command_type") not in UNREMARKABLE:
        cancel = line.type in CANCELS
        outcome = "accepted" if line.type == "command.accepted.v1" else "refused"
        yield Entry(
            entry_id=f"{line.ledger}/{line.position}",
            at=line.at,
            principal=principal,
            action="job.cancel.v1" if cancel else data["command_type"],
            object=data["job_id"] if cancel else data.get("of", ""),
            whose=data.get("tenant", ""),
            outcome="requested" if cancel else outcome,
            reason=data.get("reason", ""),
            requests=1,
        )


def _attempts(line: LedgerEvent) -> Iterator[Entry]:
    for index, each in enumerate(line.data["attempts"]):
        yield Entry(
            entry_id=f"{line.ledger}/{line.position}/{index}",
            at=line.at,
            principal=each.get("principal", ""),
            action=each.get("action", ""),
            object="",
            whose="",
            outcome="refused",
            reason="unauthenticated" if each["status"] == 401 else "forbidden",
            requests=each["requests"],
        )
