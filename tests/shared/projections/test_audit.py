"""The audit holds the actions of principals, and no normal use of a tenant."""

from __future__ import annotations

import pytest

from shared.contracts.access import Attempt, AttemptsRefused
from shared.contracts.admission import ArrayCancelRequested, CancelRequested
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.nodes import NodeCordoned
from shared.projections.audit import audit_rows
from tests.shared.ledger_events import AT, ledger_event


def test_an_accepted_command_names_its_principal_and_subject() -> None:
    accepted = CommandAccepted(
        command_id="c", command_type="node.drain.v1", of="n1", tenant="red", principal="key:ops"
    )
    (row,) = audit_rows(ledger_event("placement", accepted, seq=3, index=1))
    assert (row.entry_id, row.at, row.requests) == ("placement/0/3/1", AT, 1)
    assert (row.principal, row.action, row.object) == ("key:ops", "node.drain.v1", "n1")
    assert (row.whose, row.outcome) == ("red", "accepted")


def test_a_refused_command_has_its_reason() -> None:
    refused = CommandRefused(
        command_id="c", command_type="quota.set.v1", principal="key:a", reason="unknown_tenant"
    )
    (row,) = audit_rows(ledger_event("admission", refused))
    assert (row.outcome, row.reason) == ("refused", "unknown_tenant")


@pytest.mark.parametrize("kind", [CancelRequested, ArrayCancelRequested])
def test_a_cancel_is_requested_before_it_is_answered(
    kind: type[CancelRequested | ArrayCancelRequested],
) -> None:
    cancel = kind(job_id="j1", tenant="red", command_id="c", principal="oidc:eve", reason="typo")
    (row,) = audit_rows(ledger_event("admission", cancel))
    assert (row.action, row.object, row.outcome) == ("job.cancel.v1", "j1", "requested")


@pytest.mark.parametrize(
    "message",
    [
        CommandAccepted(command_id="c", command_type="job.submit.v1", principal="key:a"),
        CommandAccepted(command_id="c", command_type="llm.serve.v1", principal="key:a"),
        CommandAccepted(command_id="c", command_type="node.drain.v1"),
        NodeCordoned(node_id="n1"),
    ],
)
def test_normal_use_and_events_without_a_principal_are_not_audited(message: Event) -> None:
    assert list(audit_rows(ledger_event("admission", message))) == []


def test_refused_requests_are_one_row_per_kind() -> None:
    refused = AttemptsRefused(
        gateway="g1",
        attempts=(
            Attempt(action="GET /v1/jobs", status=401, requests=7),
            Attempt(principal="key:a", action="POST /v1/pools", status=403, requests=2),
        ),
    )
    first, second = audit_rows(ledger_event("access", refused, seq=5))
    assert (first.entry_id, second.entry_id) == ("access/0/5/0/0", "access/0/5/0/1")
    assert (first.principal, first.reason, first.requests) == ("", "unauthenticated", 7)
    assert (second.principal, second.reason, second.requests) == ("key:a", "forbidden", 2)
