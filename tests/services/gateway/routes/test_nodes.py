"""The lane of a command about a node, with and without Postgres."""

from __future__ import annotations

import pytest

from services.gateway.responses.problem import ApiError
from services.gateway.routes.nodes import (
    _lane,
    check_gone,
    identity_of,
    is_forgotten,
    lost_after_ms,
    silent_ms,
)
from shared.bus.clock import now_ms
from shared.contracts.enrolment import NodeEnrolled, NodeForgotten, NodeRevoked
from shared.contracts.pools import PoolConfigured
from shared.contracts.registry import Bearer
from tests.services.gateway.wired import gateway

OPERATOR = Bearer("k1", "operator", None)
MAIN, SIDE = (PoolConfigured(pool="main", partition=3), PoolConfigured(pool="side", partition=1))


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


def test_the_silence_of_a_suspected_node_ends_with_its_recording() -> None:
    made, at = gateway(MAIN), 1_700_000_000_000
    row = {"pool": "main", "backend": "agent", "alive": True, "suspected_at": at}
    made.settings = made.settings.model_copy(update={"recorded_at": at + 5_000})
    assert silent_ms(made, {**row, "silent_ms": 31_000}) == 35_000


def test_the_silence_of_a_suspected_node_goes_on() -> None:
    made, now = gateway(MAIN), now_ms()
    row: dict[str, object] = {"pool": "main", "backend": "agent", "alive": True}
    suspected = {**row, "suspected_at": now - 3_600_000, "silent_ms": 31_000}
    assert 3_630_000 <= silent_ms(made, suspected) < 7_200_000
    assert silent_ms(made, {**suspected, "silent_ms": 9_000_000}) == 9_000_000
    assert silent_ms(made, {**suspected, "silent_ms": 0}) == 0
    assert silent_ms(made, {**suspected, "alive": False}) == 31_000
    assert silent_ms(made, {**row, "suspected_at": 0, "silent_ms": 0}) == 0


def test_a_row_has_the_state_of_the_nodes_identity() -> None:
    enrolled = NodeEnrolled(
        node_id="n1", pool="main", credential_sha256="ab", approved=True, expires_at=2**52
    )
    made = gateway(MAIN, enrolled)
    assert identity_of(made, {"node_id": "n1"}) == "approved"
    assert identity_of(made, {"node_id": "virtual-1"}) is None
    revoked = gateway(MAIN, enrolled, NodeRevoked(node_id="n1"))
    assert identity_of(revoked, {"node_id": "n1"}) == "revoked"


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"alive": True}, "node_alive"), ({"used_milli": [0, 500]}, "node_holds_gpus")],
)
def test_a_node_that_may_hold_a_worker_is_not_forgotten(
    change: dict[str, object], reason: str
) -> None:
    gone = {"node_id": "n1", "alive": False, "state": "lost", "used_milli": [0, 0]}
    check_gone(gone)
    with pytest.raises(ApiError) as refused:
        check_gone({**gone, **change})
    assert (refused.value.status, refused.value.reason) == (409, reason)


def test_a_forgotten_node_is_shown_as_long_as_it_lives_or_holds_gpus() -> None:
    enrolled = NodeEnrolled(
        node_id="n1", pool="main", credential_sha256="ab", approved=True, expires_at=2**52
    )
    row: dict[str, object] = {"node_id": "n1", "alive": False, "backend": "agent", "used_milli": []}
    made = gateway(MAIN, enrolled, NodeRevoked(node_id="n1"))
    assert not is_forgotten(made, row)
    made.access.view.apply(NodeForgotten(node_id="n1"))
    made.access.caught_up.set()
    assert is_forgotten(made, row)
    for shown in ({"alive": True}, {"used_milli": [500]}, {"backend": "virtual"}):
        assert not is_forgotten(made, {**row, **shown})
