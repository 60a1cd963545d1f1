"""Operators see the state of an enrolled node, and no hash."""

from __future__ import annotations

from services.gateway.routes.enrolment import enrolled_row
from shared.contracts.node_registry import EnrolledNode


def test_a_row_shows_the_state_and_no_hash_of_a_secret() -> None:
    node = EnrolledNode("n1", "gpu", False, {"f" * 64: 500}, "hw", "t1", former={"e" * 64})
    assert enrolled_row(node, 499) == {
        "node_id": "n1",
        "pool": "gpu",
        "state": "pending",
        "expires_at": 500,
        "token_id": "t1",
        "hardware": "hw",
    }
    assert enrolled_row(node, 500)["state"] == "expired"
