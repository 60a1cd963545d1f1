"""Nodes get an identity by a token, keep it by renewals and lose it by a revocation."""

from __future__ import annotations

import pytest

from services.access.core.decide import DAY_MS, Access
from services.access.core.enrolment import FORGOTTEN_AFTER_MS, RENEWED_FOR_MS
from shared.contracts.base import Command, Event
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.enrolment import (
    ApproveNode,
    CreateNodeToken,
    EnrollNode,
    ForgetNode,
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeForgotten,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
    RenewNodeCredential,
    RevokeNode,
    RevokeNodeToken,
)
from shared.contracts.keys import hash_secret
from shared.contracts.node_registry import TOKENS_KEPT
from shared.contracts.pools import PoolConfigured
from tests.harness.decider import AT, an_input, given, run

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


def test_so_many_tokens_are_valid_at_a_time_that_none_of_them_is_forgotten() -> None:
    more = [TOKEN.model_copy(update={"token_id": f"t{n}"}) for n in range(1, TOKENS_KEPT)]
    command = CreateNodeToken(token_id="new", sha256=FIRST, pool="gpu")
    assert refused(command, POOL, *more) == "too_many_tokens"
    assert granted(command, POOL, *more[1:]) is not None
    assert granted(command, POOL, *more, NodeTokenRevoked(token_id="t7")) is not None
    assert granted(command, POOL, *more, now=TOKEN.expires_at) is not None


def test_a_node_enrols_for_the_pool_of_its_token() -> None:
    assert granted(ENROLL, POOL, TOKEN) == NODE


def test_no_node_gets_the_name_of_a_path_of_the_api() -> None:
    assert refused(changed(ENROLL, node_id="tokens"), POOL, TOKEN) == "name_reserved"


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


def test_a_repetition_after_its_credential_has_expired_needs_a_valid_token() -> None:
    expired = NODE.model_copy(update={"expires_at": AT})
    event = granted(ENROLL, POOL, TOKEN, expired)
    assert isinstance(event, NodeEnrolled) and event.expires_at > AT


def test_a_node_id_belongs_to_one_credential_until_it_is_revoked() -> None:
    another = changed(ENROLL, credential_sha256=SECOND)
    assert refused(another, POOL, TOKEN, NODE) == "node_exists"
    event = granted(another, POOL, TOKEN, NODE, REVOKED)
    assert isinstance(event, NodeEnrolled) and event.credential_sha256 == SECOND


def test_a_name_without_a_valid_credential_is_free() -> None:
    another = changed(ENROLL, credential_sha256=SECOND, hardware="hw2")
    expired = NODE.model_copy(update={"expires_at": AT})
    event = granted(another, POOL, TOKEN, expired)
    assert isinstance(event, NodeEnrolled) and event.credential_sha256 == SECOND
    back = changed(ENROLL, credential_sha256=FIRST)
    assert refused(back, POOL, TOKEN, expired, event) == "credential_revoked"


def test_a_machine_replaces_its_own_identity_if_the_token_says_so() -> None:
    token = TOKEN.model_copy(update={"replace": True})
    again = changed(ENROLL, credential_sha256=SECOND)
    event = granted(again, POOL, token, NODE)
    assert isinstance(event, NodeEnrolled) and event.credential_sha256 == SECOND
    assert refused(again, POOL, TOKEN, NODE) == "node_exists"
    assert refused(changed(again, hardware="hw2"), POOL, token, NODE) == "node_exists"
    unknown = NODE.model_copy(update={"hardware": ""})
    assert refused(changed(again, hardware=""), POOL, token, unknown) == "node_exists"
    renewal = RenewNodeCredential(
        node_id="n1", presented_sha256=FIRST, credential_sha256=hash_secret("four")
    )
    assert refused(renewal, POOL, token, NODE, event) == "unknown_credential"


def test_a_revoked_credential_never_returns() -> None:
    assert refused(ENROLL, POOL, TOKEN, NODE, REVOKED) == "credential_revoked"
    renewal = RenewNodeCredential(
        node_id="n1", presented_sha256=SECOND, credential_sha256=FIRST, hardware="hw1"
    )
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


RENEW = RenewNodeCredential(
    node_id="n1", presented_sha256=FIRST, credential_sha256=SECOND, hardware="hw1"
)
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


def test_a_copied_disk_renews_nothing() -> None:
    elsewhere = RENEW.model_copy(update={"hardware": "hw2", "former_hardware": ("hw3",)})
    assert refused(elsewhere, NODE) == "machine_changed"
    assert refused(elsewhere, NODE, RENEWED) == "machine_changed"
    older = RENEW.model_copy(update={"hardware": "hw2", "former_hardware": ("hw1",)})
    assert granted(older, NODE) == RENEWED
    assert granted(elsewhere, NODE.model_copy(update={"hardware": ""})) == RENEWED


def test_a_node_that_names_no_machine_renews_only_if_it_enrolled_without_one() -> None:
    silent = RENEW.model_copy(update={"hardware": ""})
    assert refused(silent, NODE) == "machine_unknown"
    assert refused(silent, NODE, RENEWED) == "machine_unknown"
    assert granted(silent, NODE.model_copy(update={"hardware": ""})) == RENEWED


def test_an_identity_is_forgotten_once_it_has_ended() -> None:
    forget, forgotten = ForgetNode(node_id="n1"), NodeForgotten(node_id="n1")
    assert refused(forget, NODE) == "identity_valid"
    assert refused(forget, NODE.model_copy(update={"approved": False})) == "identity_valid"
    assert granted(forget, NODE, now=NODE.expires_at) == forgotten
    assert granted(forget, NODE, REVOKED) == forgotten
    assert refused(forget, NODE, REVOKED, forgotten) == "unknown_node"
    other = changed(ENROLL, credential_sha256=SECOND, hardware="hw2")
    assert granted(other, POOL, TOKEN, NODE, REVOKED, forgotten) is not None


def test_an_identity_that_ended_long_ago_is_forgotten_at_an_enrolment_of_another() -> None:
    other = NODE.model_copy(update={"node_id": "n2", "expires_at": NODE.expires_at + DAY_MS})
    later = NODE.expires_at + FORGOTTEN_AFTER_MS
    token = TOKEN.model_copy(update={"expires_at": later + 1000})
    enroll = changed(ENROLL, node_id="n3", credential_sha256=SECOND)
    for history in ([NODE, other], [NODE, other, REVOKED]):
        decided = when(enroll, POOL, token, *history, now=later)
        assert [e for e in decided if isinstance(e, NodeForgotten)] == [NodeForgotten(node_id="n1")]
        before = when(enroll, POOL, token, *history, now=later - 1)
        assert not [e for e in before if isinstance(e, NodeForgotten)]


def test_a_renewed_identity_is_not_forgotten_by_the_age_of_its_first_credential() -> None:
    renewed = NodeCredentialRenewed(
        node_id="n1",
        credential_sha256=SECOND,
        expires_at=NODE.expires_at + 90 * DAY_MS,
        previous_sha256=FIRST,
        previous_until=AT,
    )
    later = NODE.expires_at + FORGOTTEN_AFTER_MS
    token = TOKEN.model_copy(update={"expires_at": later + 1000})
    decided = when(changed(ENROLL, node_id="n3"), POOL, token, NODE, renewed, now=later)
    assert not [e for e in decided if isinstance(e, NodeForgotten)]
