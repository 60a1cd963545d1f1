"""Operators see the state of an enrolled node, and no hash."""

from __future__ import annotations

from services.gateway.routes.enrolment import enrolled_row, token_row
from shared.contracts.enrolment import NodeTokenCreated
from shared.contracts.node_registry import EnrolledNode, JoinToken


def test_a_row_shows_the_state_and_no_hash_of_a_secret() -> None:
    node = EnrolledNode("n1", "gpu", False, {"f" * 64: 500}, "hw", "t1", former={"e" * 64: None})
    assert enrolled_row(node, 499) == {
        "node_id": "n1",
        "pool": "gpu",
        "state": "pending",
        "expires_at": 500,
        "token_id": "t1",
        "hardware": "hw",
    }
    assert enrolled_row(node, 500)["state"] == "expired"


def test_a_row_of_a_token_shows_its_state_and_no_hash() -> None:
    created = NodeTokenCreated(
        token_id="t1", sha256="f" * 64, pool="gpu", expires_at=500, max_uses=2
    )
    row = token_row(JoinToken(created, uses=1), 499)
    assert row == {
        "token_id": "t1",
        "pool": "gpu",
        "state": "valid",
        "approve": False,
        "replace": False,
        "uses": 1,
        "max_uses": 2,
        "expires_at": 500,
    }
    states = [
        token_row(JoinToken(created, uses=2), 499)["state"],
        token_row(JoinToken(created), 500)["state"],
        token_row(JoinToken(created, is_revoked=True), 500)["state"],
    ]
    assert states == ["used_up", "expired", "revoked"]
