"""A pool goes when nothing names it, and its lane stays that of its name."""

from __future__ import annotations

import pytest

from services.access.core.decide import Access
from shared.contracts.access import KeyCreated, KeyRevoked, TenantRegistered, TenantRetired
from shared.contracts.base import Command, Event
from shared.contracts.bounds import TenantBounds
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.enrolment import NodeEnrolled, NodeRevoked, NodeTokenCreated
from shared.contracts.keys import hash_secret
from shared.contracts.pools import RELEASE, ConfigurePool, DeletePool, PoolConfigured, PoolDeleted
from tests.harness.decider import AT, an_input, given, run

ACCESS = Access(lanes=2)
POOL = PoolConfigured(partition=0, pool="gpu", backends=("agent",), release=RELEASE)
OTHER = PoolConfigured(partition=1, pool="cpu", release=RELEASE)
DELETED = PoolDeleted(pool="gpu", partition=0)
TENANT = TenantRegistered(tenant="ada", default_pool="gpu")
MEMBER = TenantRegistered(
    tenant="ada", default_pool="cpu", bounds=TenantBounds(pools=("cpu", "gpu"))
)
KEY = KeyCreated(
    key_id="ci", sha256=hash_secret("s"), role="submitter", tenant="ada", pools=("gpu",)
)
NODE = NodeEnrolled(
    node_id="n1", pool="gpu", credential_sha256=hash_secret("c"), approved=True, expires_at=AT + 9
)
TOKEN = NodeTokenCreated(
    token_id="t1", sha256=hash_secret("t"), pool="gpu", expires_at=AT + 9, approve=True
)


def when(command: Command, *history: Event, now: int = AT) -> list[Event]:
    return run(ACCESS, given(ACCESS, *history), [an_input(command, "access.commands")], now)


def refusal(command: Command, *history: Event, now: int = AT) -> tuple[str, str]:
    (answer,) = when(command, *history, now=now)
    assert isinstance(answer, CommandRefused)
    return answer.reason, answer.detail


@pytest.mark.parametrize(
    ("used_by", "named"),
    [
        (TENANT, "is the default pool of tenant ada; `berth tenants set ada --pool`"),
        (MEMBER, "is in the pools of tenant ada; `berth tenants set ada pools=...`"),
        (KEY, "key ci names it; `berth keys revoke ci`"),
        (NODE, "node n1 is enrolled in it; `berth nodes revoke n1`"),
        (TOKEN, "join token t1 is valid; `berth nodes revoke-token t1`"),
    ],
)
def test_a_pool_that_something_names_stays(used_by: Event, named: str) -> None:
    detail = f"pool: 'gpu': {named}"
    assert refusal(DeletePool(pool="gpu"), POOL, OTHER, used_by) == ("pool_in_use", detail)


@pytest.mark.parametrize(
    "ended",
    [
        (TENANT, TenantRetired(tenant="ada")),
        (KEY, KeyRevoked(key_id="ci")),
        (NODE, NodeRevoked(node_id="n1")),
        (TOKEN.model_copy(update={"expires_at": AT}),),
    ],
)
def test_what_has_ended_keeps_no_pool(ended: tuple[Event, ...]) -> None:
    answer, event = when(DeletePool(pool="gpu"), POOL, OTHER, *ended)
    assert isinstance(answer, CommandAccepted)
    assert event == DELETED


def test_a_pool_that_does_not_exist_is_not_deleted() -> None:
    assert refusal(DeletePool(pool="gpu"), OTHER)[0] == "unknown_pool"
    assert refusal(DeletePool(pool="gpu"), POOL, DELETED)[0] == "unknown_pool"


def test_a_pool_stays_while_an_earlier_release_could_take_over() -> None:
    early = POOL.model_copy(update={"release": 0})
    reason, detail = refusal(DeletePool(pool="gpu"), early)
    assert (reason, "`berth upgrade finish`" in detail) == ("upgrade_not_finished", True)


def test_the_lane_of_a_deleted_pool_is_its_names_alone() -> None:
    reason, detail = refusal(ConfigurePool(pool="new"), POOL, OTHER, DELETED)
    assert reason == "no_lane_left"
    assert detail.endswith("deleted ones count, and can be added again: gpu")
    _, event = when(ConfigurePool(pool="gpu"), POOL, OTHER, DELETED)
    assert isinstance(event, PoolConfigured)
    assert (event.partition, event.release) == (0, RELEASE)
