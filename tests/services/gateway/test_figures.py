"""Enrolled nodes are counted by pool and state, also those that were never heard."""

from __future__ import annotations

from services.gateway.figures import figures
from shared.contracts.enrolment import NodeApproved, NodeEnrolled, NodeRevoked
from shared.contracts.node_registry import NodeRegistry

HOUR_MS = 3_600_000


def enrolled(node_id: str, pool: str, hours: int, approved: bool = True) -> NodeEnrolled:
    return NodeEnrolled(
        node_id=node_id,
        pool=pool,
        credential_sha256=node_id[-1] * 64,
        approved=approved,
        expires_at=hours * HOUR_MS,
        token_id="t",
    )


def test_nodes_are_counted_by_pool_and_state() -> None:
    registry = NodeRegistry()
    for event in (
        enrolled("a1", "a", 10),
        enrolled("a2", "a", 5, approved=False),
        enrolled("a3", "a", 7, approved=False),
        NodeApproved(node_id="a3"),
        enrolled("a4", "a", 1),
        enrolled("b5", "b", 10),
        NodeRevoked(node_id="b5"),
    ):
        registry.apply(event)
    counts = {figure.labels: figure.value for figure in figures(registry, 2 * HOUR_MS)}
    assert counts == {
        ("a", "approved"): 2,
        ("a", "pending"): 1,
        ("a", "expired"): 1,
        ("a", "revoked"): 0,
        ("a",): 5 * 3600,
        ("b", "approved"): 0,
        ("b", "pending"): 0,
        ("b", "expired"): 0,
        ("b", "revoked"): 1,
    }
