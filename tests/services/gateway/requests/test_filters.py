"""A filter whose value no row can have is an error that names field, value and rule."""

from __future__ import annotations

import re

import pytest

from services.gateway.core.field_errors import InvalidBody
from services.gateway.requests.filters import (
    check_action,
    check_pool,
    check_tenant,
    check_types,
    no_such,
    one_of,
)
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.pools import PoolConfigured
from tests.services.gateway.wired import gateway

FACTS = (
    PoolConfigured(pool="main", partition=3),
    PoolConfigured(pool="side", partition=1),
    TenantRegistered(tenant="ada", default_pool="main"),
    TenantRetired(tenant="ada"),
)


def test_a_pool_that_is_not_configured_is_an_error() -> None:
    made = gateway(*FACTS)
    for pool in (None, "main", "side"):
        check_pool(made, pool)
    with pytest.raises(InvalidBody, match="^pool = 'mian': must be one of main, side$"):
        check_pool(made, "mian")
    with pytest.raises(InvalidBody, match="none is configured"):
        check_pool(gateway(), "main")


def test_a_retired_tenant_is_known_and_another_is_an_error() -> None:
    made = gateway(*FACTS)
    for tenant in (None, "ada"):
        check_tenant(made, tenant)
    with pytest.raises(InvalidBody, match="^tenant = 'bob': must be one of ada$"):
        check_tenant(made, "bob")


def test_a_type_of_no_event_is_an_error_that_names_similar_ones() -> None:
    check_types([])
    check_types(["job.placed.v1", "node.joined.v1"])
    with pytest.raises(InvalidBody, match=r"^types = 'job.placd.v1': .*such as job\.placed\.v1"):
        check_types(["job.placed.v1", "job.placd.v1"])


def test_an_action_is_a_command_or_a_request() -> None:
    for action in (None, "key.create.v1", "GET /v1/jobs"):
        check_action(action)
    with pytest.raises(InvalidBody, match=r"^action = 'key.creat.v1': .*such as key\.create\.v1"):
        check_action("key.creat.v1")


def test_a_long_value_is_not_repeated_and_many_names_are_counted() -> None:
    assert str(no_such("pool", "x" * 65, "no")) == "pool: no"
    rule = one_of(f"pool-{index:02}" for index in range(23))
    assert re.fullmatch(r"must be one of pool-00, .*, pool-19 or 3 others", rule)
