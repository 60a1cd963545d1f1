from __future__ import annotations

import pytest

from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.pools import PoolConfigured
from shared.ledger.restate import restate_settings, restate_tenants
from tests.harness.decider import an_input

POOL = PoolConfigured(partition=0, pool="main")
FASTER = POOL.model_copy(update={"time_scale": 60.0})
CHAT = EndpointConfigured(endpoint="chat", partition=0)
RED = TenantRegistered(tenant="red", default_pool="main")
HEAVY_RED = TenantRegistered(tenant="red", default_pool="main", weight=2.0)
RETIRED_RED = TenantRetired(tenant="red")
ACTIVE = TenantNoted(tenant="red")
HEAVY = TenantNoted(tenant="red", weight=2.0)
INACTIVE = TenantNoted(tenant="red", active=False)


@pytest.mark.parametrize(
    ("events", "known", "restated"),
    [
        ([POOL], None, [POOL]),
        ([POOL], POOL, []),
        ([POOL, FASTER], None, [FASTER]),
        ([POOL, FASTER], FASTER, []),
        ([FASTER, FASTER.model_copy(update={"partition": 1})], POOL, [FASTER]),
        ([CHAT], POOL, []),
    ],
)
def test_only_new_settings_of_the_own_lane_are_restated(
    events: list[Event], known: PoolConfigured | None, restated: list[Event]
) -> None:
    inputs = [an_input(event, "access") for event in events]
    decisions = restate_settings(inputs, PoolConfigured, 0, known)
    assert [decision.event for decision in decisions] == restated


def test_an_endpoint_is_restated_until_it_is_deleted() -> None:
    kinds = (EndpointConfigured, EndpointDeleted)
    gone = EndpointDeleted(endpoint="chat", partition=0)
    inputs = [an_input(event, "access") for event in (CHAT, gone)]
    decisions = restate_settings(inputs, kinds, 0, CHAT)
    assert [decision.event for decision in decisions] == [gone]
    decisions = restate_settings(inputs[:1], kinds, 0, gone)
    assert [decision.event for decision in decisions] == [CHAT]


def test_the_weight_of_a_tenant_is_the_one_that_is_asked_for() -> None:
    red = TenantRegistered(tenant="red", default_pool="main", weight=2.0, llm_weight=3.0)
    inputs = [an_input(red, "access")]
    (decision,) = restate_tenants(inputs, never_noted, lambda tenant: tenant.llm_weight)
    assert decision.event == TenantNoted(tenant="red", weight=3.0)


@pytest.mark.parametrize(
    ("events", "known", "restated"),
    [
        ([RED], None, [ACTIVE]),
        ([RED], ACTIVE, []),
        ([HEAVY_RED], ACTIVE, [HEAVY]),
        ([RETIRED_RED], ACTIVE, [INACTIVE]),
        ([RETIRED_RED], HEAVY, [HEAVY.model_copy(update={"active": False})]),
        ([RETIRED_RED], INACTIVE, []),
        ([RETIRED_RED], None, []),
        ([RED], INACTIVE, [ACTIVE]),
        ([RED, RETIRED_RED], INACTIVE, []),
        ([RED, RETIRED_RED], None, [INACTIVE]),
        ([RED, HEAVY_RED], ACTIVE, [HEAVY]),
    ],
)
def test_only_tenants_that_differ_are_restated(
    events: list[Event], known: TenantNoted | None, restated: list[Event]
) -> None:
    inputs = [an_input(event, "access") for event in events]
    decisions = restate_tenants(inputs, {"red": known}.get)
    assert [decision.event for decision in decisions] == restated


def never_noted(tenant: str) -> None:
    """Return what is noted of a tenant that no event has named yet."""


def test_each_tenant_of_a_batch_is_restated() -> None:
    blue = TenantRegistered(tenant="blue", default_pool="main")
    inputs = [an_input(event, "access") for event in (RED, blue, RETIRED_RED)]
    decisions = restate_tenants(inputs, never_noted)
    assert [decision.event for decision in decisions] == [INACTIVE, TenantNoted(tenant="blue")]


def test_a_decision_belongs_to_the_last_input_on_its_subject() -> None:
    inputs = [an_input(RED, "access"), an_input(HEAVY_RED, "access")]
    (decision,) = restate_tenants(inputs, never_noted)
    assert decision == inputs[1].decision(HEAVY)
