"""Nodes get an identity by a token, keep it by renewals and lose it by a revocation."""

from __future__ import annotations

import pytest

from services.access.core.decide import DAY_MS, Access
from services.access.core.enrolment import RENEWED_FOR_MS
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Command, Event
from shared.contracts.enrolment import (
    ApproveNode,
    CreateNodeToken,
    EnrollNode,
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
    RenewNodeCredential,
    RevokeNode,
    RevokeNodeToken,
)
from shared.contracts.jobs import CommandAccepted, CommandRefused
from shared.contracts.keys import hash_secret
from shared.testing.decider import AT, an_input, given, run

ACCESS = Access(lanes=3, credential_days=90)
POOL = PoolConfigured(partition=0, pool="gpu", backends=("agent",))
TOKEN = NodeTokenCreated(
    token_id="t1", sha256=hash_secret("ts"), pool="gpu", expires_at=AT + 1000, approve=True
)
FIRST, SECOND, THIRD = (hash_secret(secret) for secret in ("one", "two", "three"))
NODE = NodeEnrolled(
    node_id="n1",
    pool="gpu",
    credential_sha256=FIRST,
    approved=True,
    expires_at=AT + 90 * DAY_MS,
    token_id="t1",
    hardware="hw1",
)
REVOKED = NodeRevoked(node_id="n1")
ENROLL = EnrollNode(node_id="n1", token_id="t1", credential_sha256=FIRST, hardware="hw1")


def changed(command: EnrollNode, **fields: object) -> EnrollNode:
    return command.model_copy(update=fields)


def when(command: Command, *history: Event, now: int = AT) -> list[Event]:
    return run(ACCESS, given(ACCESS, *history), [an_input(command, "access.commands")], now)


def granted(command: Command, *history: Event, now: int = AT) -> Event | None:
    """Return the event of an accepted command; None for a duplicate."""
    answer, *events = when(command, *history, now=now)
    assert isinstance(answer, CommandAccepted)
    assert answer.duplicate is (not events)
    return events[0] if events else None


def refused(command: Command, *history: Event, now: int = AT) -> str:
    (answer,) = when(command, *history, now=now)
    assert isinstance(answer, CommandRefused)
    assert answer.detail
    return answer.reason


def test_a_token_lasts_for_its_time() -> None:
    command = CreateNodeToken(
        token_id="t1", sha256=hash_secret("ts"), pool="gpu", ttl_s=60, max_uses=2
    )
    assert granted(command, POOL) == NodeTokenCreated(
        token_id="t1", sha256=hash_secret("ts"), pool="gpu", expires_at=AT + 60_000, max_uses=2
    )


def test_a_token_needs_a_pool_with_the_backend_agent() -> None:
    command = CreateNodeToken(token_id="t1", sha256=FIRST, pool="gpu")
    assert refused(command) == "unknown_pool"
    virtual = PoolConfigured(partition=0, pool="gpu", backends=("virtual",))
    assert refused(command, virtual) == "backend_not_allowed"


def test_no_node_joins_with_a_revoked_token_and_joined_ones_stay() -> None:
    revoke, revoked = RevokeNodeToken(token_id="t1"), NodeTokenRevoked(token_id="t1")
    assert granted(revoke, POOL, TOKEN) == revoked
    assert granted(revoke, POOL, TOKEN, revoked) is None
    assert refused(revoke, POOL) == "unknown_token"
    other = changed(ENROLL, node_id="n2", credential_sha256=SECOND)
    assert refused(other, POOL, TOKEN, NODE, revoked) == "token_revoked"
    assert granted(ENROLL, POOL, TOKEN, NODE, revoked) is None


def test_a_token_id_is_given_once() -> None:
    command = CreateNodeToken(token_id="t1", sha256=FIRST, pool="gpu")
    assert refused(command, POOL, TOKEN) == "token_exists"


def test_a_node_enrols_for_the_pool_of_its_token() -> None:
    assert granted(ENROLL, POOL, TOKEN) == NODE


def test_without_approval_by_the_token_a_node_waits_for_an_operator() -> None:
    token = TOKEN.model_copy(update={"approve": False})
    event = granted(ENROLL, POOL, token)
    assert isinstance(event, NodeEnrolled) and not event.approved


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ({"token_id": "t2"}, "unknown_token"),
        ({"expires_at": AT}, "token_expired"),
        ({"max_uses": 1}, "token_used_up"),
    ],
)
def test_a_token_that_is_not_valid_is_refused(token: dict[str, object], reason: str) -> None:
    other = NODE.model_copy(update={"node_id": "n0", "credential_sha256": SECOND})
    assert refused(ENROLL, POOL, TOKEN.model_copy(update=token), other) == reason


def test_a_repeated_enrolment_changes_nothing_even_if_the_token_has_expired() -> None:
    used_up = TOKEN.model_copy(update={"max_uses": 1})
    assert granted(ENROLL, POOL, used_up, NODE, now=AT + 10_000) is None


def test_a_node_id_belongs_to_one_credential_until_it_is_revoked() -> None:
    another = changed(ENROLL, credential_sha256=SECOND)
    assert refused(another, POOL, TOKEN, NODE) == "node_exists"
    event = granted(another, POOL, TOKEN, NODE, REVOKED)
    assert isinstance(event, NodeEnrolled) and event.credential_sha256 == SECOND


def test_a_revoked_credential_never_returns() -> None:
    assert refused(ENROLL, POOL, TOKEN, NODE, REVOKED) == "credential_revoked"
    renewal = RenewNodeCredential(node_id="n1", presented_sha256=SECOND, credential_sha256=FIRST)
    again = NODE.model_copy(update={"credential_sha256": SECOND})
    assert refused(renewal, POOL, TOKEN, NODE, REVOKED, again) == "credential_revoked"


def test_a_credential_does_not_move_to_another_machine() -> None:
    assert refused(changed(ENROLL, hardware="hw2"), POOL, TOKEN, NODE) == "machine_changed"
    assert granted(changed(ENROLL, hardware=""), POOL, TOKEN, NODE) is None


def test_an_operator_approves_a_node_once() -> None:
    pending = NODE.model_copy(update={"approved": False})
    assert granted(ApproveNode(node_id="n1"), pending) == NodeApproved(node_id="n1")
    assert granted(ApproveNode(node_id="n1"), NODE) is None
    assert refused(ApproveNode(node_id="n1"), NODE, REVOKED) == "node_revoked"
    assert refused(ApproveNode(node_id="ghost"), NODE) == "unknown_node"


def test_a_revocation_is_recorded_once() -> None:
    command = RevokeNode(node_id="n1", reason="stolen")
    assert granted(command, NODE) == NodeRevoked(node_id="n1", reason="stolen")
    assert granted(command, NODE, REVOKED) is None
    assert refused(RevokeNode(node_id="ghost"), NODE) == "unknown_node"


RENEW = RenewNodeCredential(node_id="n1", presented_sha256=FIRST, credential_sha256=SECOND)
RENEWED = NodeCredentialRenewed(
    node_id="n1",
    credential_sha256=SECOND,
    expires_at=AT + 90 * DAY_MS,
    previous_sha256=FIRST,
    previous_until=AT + RENEWED_FOR_MS,
)


def test_a_renewal_keeps_the_presented_credential_for_a_while() -> None:
    assert granted(RENEW, NODE) == RENEWED
    soon = NODE.model_copy(update={"expires_at": AT + 5})
    event = granted(RENEW, soon)
    assert isinstance(event, NodeCredentialRenewed) and event.previous_until == AT + 5


def test_a_renewal_is_repeated_if_its_answer_was_lost() -> None:
    assert granted(RENEW, NODE, RENEWED) is None
    third = RENEW.model_copy(update={"credential_sha256": THIRD})
    assert isinstance(granted(third, NODE, RENEWED), NodeCredentialRenewed)


@pytest.mark.parametrize("history", [(), (NODE, REVOKED)])
def test_a_node_without_a_valid_credential_renews_nothing(history: tuple[Event, ...]) -> None:
    assert refused(RENEW, *history) in ("unknown_node", "unknown_credential")


def test_an_expired_credential_is_not_renewed() -> None:
    assert refused(RENEW, NODE, now=NODE.expires_at) == "unknown_credential"
    late = RENEW.model_copy(update={"credential_sha256": THIRD})
    assert refused(late, NODE, RENEWED, now=RENEWED.previous_until) == "unknown_credential"
