"""The lane of a command about a node, with and without Postgres."""

from __future__ import annotations

import pytest

from services.gateway.problem import ApiError
from services.gateway.routes.nodes import Verb, _command, _lane, identity_of, lost_after_ms
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Command
from shared.contracts.enrolment import NodeEnrolled, NodeRevoked
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from shared.contracts.registry import Bearer
from tests.services.gateway.wired import gateway

OPERATOR = Bearer("k1", "operator", None)
MAIN, SIDE = (PoolConfigured(pool="main", partition=3), PoolConfigured(pool="side", partition=1))


@pytest.mark.parametrize(
    ("verb", "command"),
    [
        ("cordon", CordonNode(node_id="n1", reason="fan")),
        ("drain", DrainNode(node_id="n1", reason="fan")),
        ("uncordon", UncordonNode(node_id="n1")),
    ],
)
def test_each_verb_is_a_command(verb: Verb, command: Command) -> None:
    assert _command("n1", verb, "fan") == command


async def test_the_named_pool_decides_the_lane() -> None:
    assert await _lane(gateway(MAIN, SIDE), OPERATOR, "n1", "side") == 1
    with pytest.raises(ApiError, match="no such pool: other"):
        await _lane(gateway(MAIN, SIDE), OPERATOR, "n1", "other")


async def test_without_postgres_the_only_pool_is_that_of_the_node() -> None:
    assert await _lane(gateway(MAIN), OPERATOR, "n1", None) == 3
    with pytest.raises(ApiError) as refused:
        await _lane(gateway(MAIN, SIDE), OPERATOR, "n1", None)
    assert (refused.value.status, refused.value.reason) == (503, "reads_unavailable")


def test_a_node_is_lost_after_the_silence_that_placement_noted_or_the_pool_requires() -> None:
    kept = PoolConfigured(pool="kept", partition=2, stop_after_s="keep")
    made = gateway(MAIN, kept)
    row: dict[str, object] = {"pool": "main", "backend": "agent", "suspected_at": 0}
    assert lost_after_ms(made, {**row, "lost_after_ms": 0}) == 773_750
    assert lost_after_ms(made, {**row, "suspected_at": 5, "lost_after_ms": 99_000}) == 99_000
    assert lost_after_ms(made, {**row, "suspected_at": 5, "lost_after_ms": 0}) is None
    assert lost_after_ms(made, {**row, "pool": "kept", "lost_after_ms": 0}) is None
    assert lost_after_ms(made, {**row, "backend": "virtual", "lost_after_ms": 0}) == 60_000


def test_a_row_has_the_state_of_the_nodes_identity() -> None:
    enrolled = NodeEnrolled(
        node_id="n1", pool="main", credential_sha256="ab", approved=True, expires_at=2**52
    )
    made = gateway(MAIN, enrolled)
    assert identity_of(made, {"node_id": "n1"}) == "approved"
    assert identity_of(made, {"node_id": "virtual-1"}) is None
    revoked = gateway(MAIN, enrolled, NodeRevoked(node_id="n1"))
    assert identity_of(revoked, {"node_id": "n1"}) == "revoked"
