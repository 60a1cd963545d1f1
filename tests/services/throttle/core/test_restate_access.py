from __future__ import annotations

from services.throttle.core.restate_access import restate_access
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.testing.decider import an_input
from tests.services.throttle.llm import ENDPOINT, lane


def restate(event: Event) -> list[Event]:
    return [decision.event for decision in restate_access(lane(), an_input(event, "access"))]


def test_only_a_changed_endpoint_of_the_own_lane_is_restated() -> None:
    changed = ENDPOINT.model_copy(update={"batch_tokens": 5})
    assert restate(changed) == [changed]
    assert restate(ENDPOINT) == []
    assert restate(changed.model_copy(update={"partition": 1})) == []


def test_only_a_new_tenant_or_another_weight_is_restated() -> None:
    assert restate(TenantRegistered(tenant="a", default_pool="p")) == []
    assert restate(TenantRegistered(tenant="a", default_pool="p", weight=2.0)) == [
        TenantNoted(tenant="a", weight=2.0)
    ]
    assert restate(TenantRegistered(tenant="new", default_pool="p")) == [TenantNoted(tenant="new")]


def test_only_a_known_tenant_is_retired() -> None:
    assert restate(TenantRetired(tenant="a")) == [TenantNoted(tenant="a", active=False)]
    assert restate(TenantRetired(tenant="ghost")) == []
