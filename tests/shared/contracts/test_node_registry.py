"""The fold of the enrolments: which credential and token counts, and why another does not."""

from __future__ import annotations

import pytest

from shared.contracts.base import Event
from shared.contracts.enrolment import (
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeForgotten,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
)
from shared.contracts.keys import hash_secret
from shared.contracts.node_registry import TOKENS_KEPT, EnrolledNode, NodeRegistry, Refusal

NOW = 1_000
TOKEN = NodeTokenCreated(token_id="t.1", sha256=hash_secret("ts"), pool="gpu", expires_at=NOW)
NODE = NodeEnrolled(
    node_id="n.1",
    pool="gpu",
    credential_sha256=hash_secret("one"),
    approved=False,
    expires_at=NOW + 100,
    token_id="t.1",
)
APPROVED = NodeApproved(node_id="n.1")
RENEWED = NodeCredentialRenewed(
    node_id="n.1",
    credential_sha256=hash_secret("two"),
    expires_at=NOW + 500,
    previous_sha256=hash_secret("one"),
    previous_until=NOW + 10,
)


def registry(*events: Event) -> NodeRegistry:
    made = NodeRegistry()
    for event in events:
        made.apply(event)
    return made


def refusal(text: str, *events: Event, now: int = NOW) -> tuple[int, str]:
    answer = registry(*events).authenticate(text, now)
    assert isinstance(answer, Refusal)
    return answer.status, answer.reason


def test_an_approved_node_is_authenticated_by_its_secret() -> None:
    node = registry(NODE, APPROVED).authenticate("n.1.one", NOW)
    assert isinstance(node, EnrolledNode)
    assert (node.node_id, node.pool, node.state(NOW)) == ("n.1", "gpu", "approved")


@pytest.mark.parametrize("text", ["", "n.1", "n.1.", ".one", "n.1.wrong", "ghost.one"])
def test_an_unknown_credential_is_refused(text: str) -> None:
    assert refusal(text, NODE, APPROVED) == (401, "unknown_credential")


def test_a_pending_node_may_not_work() -> None:
    assert refusal("n.1.one", NODE) == (403, "node_not_approved")
    assert registry(NODE).nodes["n.1"].state(NOW) == "pending"


def test_an_expired_credential_is_refused() -> None:
    assert refusal("n.1.one", NODE, APPROVED, now=NOW + 100) == (401, "credential_expired")
    assert registry(NODE).nodes["n.1"].state(NOW + 100) == "expired"


def test_a_revoked_credential_is_named_as_such_and_the_next_one_counts() -> None:
    events = (NODE, APPROVED, NodeRevoked(node_id="n.1"))
    assert refusal("n.1.one", *events) == (403, "node_revoked")
    assert registry(*events).nodes["n.1"].state(NOW) == "revoked"
    anew = NODE.model_copy(update={"credential_sha256": hash_secret("two"), "approved": True})
    assert refusal("n.1.one", *events, anew) == (403, "node_revoked")
    assert isinstance(registry(*events, anew).authenticate("n.1.two", NOW), EnrolledNode)


def test_a_replaced_credential_is_refused() -> None:
    anew = NODE.model_copy(update={"credential_sha256": hash_secret("three"), "approved": True})
    replaced = registry(NODE, APPROVED, RENEWED, anew)
    for secret in ("one", "two"):
        assert refusal(f"n.1.{secret}", NODE, APPROVED, RENEWED, anew) == (403, "node_revoked")
    assert isinstance(replaced.authenticate("n.1.three", NOW), EnrolledNode)


def test_both_credentials_count_for_a_while_after_a_renewal() -> None:
    renewed = registry(NODE, APPROVED, RENEWED)
    assert isinstance(renewed.authenticate("n.1.one", NOW + 9), EnrolledNode)
    assert isinstance(renewed.authenticate("n.1.two", NOW + 499), EnrolledNode)
    assert refusal("n.1.one", NODE, APPROVED, RENEWED, now=NOW + 10)[1] == "credential_expired"
    assert renewed.nodes["n.1"].expires_at == NOW + 500


def test_a_revocation_ends_both_credentials_of_a_renewal() -> None:
    events = (NODE, APPROVED, RENEWED, NodeRevoked(node_id="n.1"))
    assert {refusal(f"n.1.{secret}", *events) for secret in ("one", "two")} == {
        (403, "node_revoked")
    }


def renewed(presented: str, fresh: str) -> NodeCredentialRenewed:
    update = {"credential_sha256": hash_secret(fresh), "previous_sha256": hash_secret(presented)}
    return RENEWED.model_copy(update=update)


def test_a_secret_that_a_renewal_dropped_is_remembered_also_after_a_revocation() -> None:
    """The node renews with its next secret where the answer to a renewal was lost."""
    events = (NODE, APPROVED, renewed("one", "two"), renewed("two", "three"))
    assert list(registry(*events).nodes["n.1"].former) == [hash_secret("one")]
    assert isinstance(registry(*events).authenticate("n.1.three", NOW), EnrolledNode)
    revoked = registry(*events, NodeRevoked(node_id="n.1")).nodes["n.1"]
    assert list(revoked.former) == [hash_secret(secret) for secret in ("one", "two", "three")]
    for secret in ("one", "two", "three"):
        assert refusal(f"n.1.{secret}", *events, NodeRevoked(node_id="n.1"))[1] == "node_revoked"


@pytest.mark.parametrize("text", ["", "t.1", "t.1.wrong", "ghost.ts"])
def test_a_wrong_token_is_none(text: str) -> None:
    assert registry(TOKEN).verify_token(text) is None


def test_a_token_counts_the_nodes_that_used_it() -> None:
    assert registry(TOKEN).verify_token("t.1.ts") == TOKEN
    once = registry(TOKEN.model_copy(update={"max_uses": 1}), NODE)
    assert once.tokens["t.1"].uses == 1 and once.tokens["t.1"].state(0) == "used_up"


def test_a_bounded_number_of_tokens_is_known_and_ended_ones_go_first() -> None:
    used_up = NODE.model_copy(update={"token_id": "t.once"})
    once = {"token_id": "t.once", "expires_at": NOW + 10_000, "max_uses": 1}
    made = registry(TOKEN, TOKEN.model_copy(update=once), used_up)
    made.apply(TOKEN.model_copy(update={"token_id": "t.revoked", "expires_at": NOW + 20_000}))
    made.apply(NodeTokenRevoked(token_id="t.revoked"))
    kept = [f"t.{n}" for n in range(2, TOKENS_KEPT + 2)]
    for number, name in enumerate(kept):
        made.apply(TOKEN.model_copy(update={"token_id": name, "expires_at": NOW + 100 + number}))
    assert list(made.tokens) == kept
    assert made.valid_tokens(NOW + 100) == TOKENS_KEPT - 1


def test_a_forgotten_node_has_no_identity() -> None:
    made = registry(NODE, APPROVED, NodeForgotten(node_id="n.1"), APPROVED)
    assert made.nodes == {}
    assert refusal("n.1.one", NODE, APPROVED, NodeForgotten(node_id="n.1")) == (
        401,
        "unknown_credential",
    )
