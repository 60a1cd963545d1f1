"""A tenant is registered in a pool that exists, and keeps its number."""

from __future__ import annotations

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from shared.contracts.access import RegisterTenant, TenantRegistered, TenantRetired
from shared.contracts.pools import PoolConfigured
from shared.contracts.registry import AccessView


def test_a_tenant_of_an_unknown_pool_is_denied_with_the_remedy() -> None:
    outcome = decide_configuration(
        AccessView(), 4, RegisterTenant(tenant="acme", default_pool="main")
    )
    detail = "default_pool: 'main': no such pool; configure it first"
    assert outcome == Denial("acme", "unknown_pool", detail)


def test_a_tenant_is_numbered_once_and_keeps_its_number() -> None:
    view = AccessView()
    view.apply(PoolConfigured(partition=0, pool="main"))
    view.apply(TenantRegistered(tenant="old", default_pool="main"))

    def register(tenant: str, weight: float = 1.0) -> int | None:
        command = RegisterTenant(tenant=tenant, default_pool="main", weight=weight)
        outcome = decide_configuration(view, 4, command)
        assert isinstance(outcome, Grant)
        if outcome.event is None:
            return None
        assert isinstance(outcome.event, TenantRegistered)
        view.apply(outcome.event)
        return outcome.event.number

    assert register("old") is None
    assert [register("ada"), register("bob"), register("ada", 2.0)] == [1, 2, 1]
    view.apply(TenantRetired(tenant="ada"))
    assert [register("carl"), register("ada", 2.0), register("old", 2.0)] == [3, 1, 0]
