"""A change of settings changes those that it names and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from services.access.core.configuration import decide_configuration
from services.access.core.outcomes import Denial, Grant
from services.access.core.updates import decide_update
from shared.contracts.access import RegisterTenant, TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.bounds import UNBOUNDED, TenantBounds
from shared.contracts.endpoints import EndpointConfigured, Upstream
from shared.contracts.pools import RELEASE, PoolConfigured, PoolSettings
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateEndpoint, UpdatePool, UpdateTenant

POOL = PoolConfigured(
    pool="gpu", partition=2, release=RELEASE, backends=("agent",), learned="berth", spot_gpus=8
)
OLD = POOL.model_copy(update={"release": 0, "mitigation": "off"})
CHAT = EndpointConfigured(
    endpoint="chat", partition=1, upstreams=(Upstream(name="a", url="http://a:1"),), queue_limit=9
)
ADA = TenantRegistered(tenant="ada", default_pool="gpu", weight=3.0, llm_weight=2.0, number=4)


def view_of(*events: Event) -> AccessView:
    view = AccessView()
    for event in events:
        view.apply(event)
    return view


def test_a_pool_keeps_what_a_change_does_not_name() -> None:
    outcome = decide_update(view_of(POOL), UpdatePool(pool="gpu", queue_mode="easy"))
    assert outcome == Grant("gpu", POOL.model_copy(update={"queue_mode": "easy"}))


def test_the_reason_of_a_change_is_recorded_with_it_and_is_no_setting() -> None:
    because = {"preemption": "ranked", "reason": "waits are shorter"}
    outcome = decide_update(view_of(POOL), UpdatePool.model_validate({"pool": "gpu", **because}))
    changed = POOL.model_copy(update=because)
    assert outcome == Grant("gpu", changed)
    assert version_of(changed) == version_of(POOL.model_copy(update={"preemption": "ranked"}))
    view = view_of(changed)
    assert decide_update(view, UpdatePool(pool="gpu", reason="again")) == Grant("gpu", None)
    outcome = decide_update(view, UpdatePool(pool="gpu", rank_ms=7))
    assert outcome == Grant("gpu", changed.model_copy(update={"rank_ms": 7, "reason": ""}))


@pytest.mark.parametrize("setting", sorted(PoolSettings.model_fields.keys() - {"pool"}))
def test_null_is_the_default_of_each_setting_of_a_pool(setting: str) -> None:
    command = UpdatePool.model_validate({"pool": "gpu", setting: None})
    default = PoolSettings.model_fields[setting].default
    expected = POOL.model_copy(update={setting: default})
    assert decide_update(view_of(POOL), command) == Grant(
        "gpu", None if expected == POOL else expected
    )


def test_two_changes_of_different_settings_both_hold() -> None:
    view = view_of(POOL)
    for changes in ({"rank_ms": 7}, {"round_ms": 9}):
        outcome = decide_update(view, UpdatePool.model_validate({"pool": "gpu", **changes}))
        assert isinstance(outcome, Grant) and outcome.event is not None
        view.apply(outcome.event)
    assert view.pools["gpu"] == POOL.model_copy(update={"rank_ms": 7, "round_ms": 9})


def denial_of(command: Any, *events: Event) -> str:
    outcome = decide_update(view_of(*events), command)
    assert isinstance(outcome, Denial)
    return outcome.reason


def test_a_change_is_denied_where_the_settings_after_it_would_be() -> None:
    assert denial_of(UpdatePool(pool="cpu", rank_ms=7), POOL) == "unknown_pool"
    assert denial_of(UpdatePool(pool="gpu", backends=("process",)), POOL) == "backend_retired"
    assert denial_of(UpdatePool(pool="gpu", tenants=("eve",)), POOL) == "unknown_tenant"
    other = UpdatePool(pool="gpu", rank_ms=7, if_version="0" * 16)
    assert denial_of(other, POOL) == "version_conflict"
    based = UpdatePool(pool="gpu", rank_ms=7, if_version=version_of(POOL))
    assert isinstance(decide_update(view_of(POOL), based), Grant)
    assert denial_of(UpdateEndpoint(endpoint="x", slack=1.0), CHAT) == "unknown_endpoint"
    assert denial_of(UpdateEndpoint(endpoint="chat", aliases=("a", "a")), CHAT) == "name_repeated"
    assert denial_of(UpdateTenant(tenant="eve", weight=2), POOL, ADA) == "unknown_tenant"
    retired = TenantRetired(tenant="ada")
    assert denial_of(UpdateTenant(tenant="ada", weight=2), POOL, ADA, retired) == "unknown_tenant"
    moved = UpdateTenant(tenant="ada", default_pool="cpu")
    assert denial_of(moved, POOL, ADA) == "unknown_pool"


def test_a_pool_of_an_earlier_release_holds_what_that_cannot_read() -> None:
    early = UpdatePool(pool="gpu", mitigation="automatic")
    assert denial_of(early, OLD) == "upgrade_not_finished"
    late = UpdatePool(pool="gpu", backends=("kubernetes",))
    assert denial_of(late, OLD) == "upgrade_not_finished"
    assert isinstance(decide_update(view_of(POOL), late), Grant)
    for setting in ({"scheduler": "gavel"}, {"scheduler_shadow": "afs"}, {"packing": "fragments"}):
        under = UpdatePool.model_validate({"pool": "gpu", **setting})
        assert denial_of(under, OLD) == "upgrade_not_finished"
        assert isinstance(decide_update(view_of(POOL), under), Grant)
    null = UpdatePool.model_validate({"pool": "gpu", "mitigation": None})
    assert decide_update(view_of(OLD), null) == Grant("gpu", None)


def test_an_endpoint_and_a_tenant_keep_what_a_change_does_not_name() -> None:
    drained = decide_update(view_of(CHAT), UpdateEndpoint(endpoint="chat", drained=True))
    assert drained == Grant("chat", CHAT.model_copy(update={"drained": True}))
    heavier = decide_update(view_of(POOL, ADA), UpdateTenant(tenant="ada", weight=5.0))
    assert heavier == Grant("ada", ADA.model_copy(update={"weight": 5.0}))


def test_bounds_that_a_change_does_not_name_stay_as_they_are() -> None:
    """Of a tenant of an earlier release the others are not bound."""
    narrower = decide_update(view_of(POOL, ADA), UpdateTenant(tenant="ada", highest_class="normal"))
    bounds = UNBOUNDED.model_copy(update={"highest_class": "normal"})
    assert narrower == Grant("ada", ADA.model_copy(update={"bounds": bounds}))
    bound = ADA.model_copy(update={"bounds": bounds})
    default = decide_update(view_of(POOL, bound), UpdateTenant(tenant="ada", max_grace_s=None))
    expected = bounds.model_copy(update={"max_grace_s": 3600.0})
    assert default == Grant("ada", ADA.model_copy(update={"bounds": expected}))
    unknown = UpdateTenant(tenant="ada", pools=("nowhere",))
    assert denial_of(unknown, POOL, ADA) == "unknown_pool"
    other = PoolConfigured(pool="cpu", partition=1, release=RELEASE)
    away = UpdateTenant(tenant="ada", pools=("cpu",))
    assert denial_of(away, POOL, other, ADA) == "pool_not_allowed"


def test_a_registration_keeps_what_it_leaves_at_defaults() -> None:
    bounds = TenantBounds(highest_class="low", max_open_jobs=5)
    bound = ADA.model_copy(update={"bounds": bounds})
    for history, before in (((bound,), bounds), ((ADA,), None)):
        again = RegisterTenant(tenant="ada", default_pool="gpu")
        assert decide_configuration(view_of(POOL, *history), 4, again) == Grant("ada", None)
        named = RegisterTenant(tenant="ada", default_pool="gpu", weight=7.0, max_grace_s=60)
        narrower = (before or UNBOUNDED).model_copy(update={"max_grace_s": 60.0})
        assert decide_configuration(view_of(POOL, *history), 4, named) == Grant(
            "ada", ADA.model_copy(update={"weight": 7.0, "bounds": narrower})
        )
    back = decide_configuration(view_of(POOL, bound, TenantRetired(tenant="ada")), 4, again)
    assert back == Grant("ada", bound), "a retired tenant comes back as it was"


def test_a_change_of_a_tenant_that_is_based_on_another_version_is_refused() -> None:
    stale = UpdateTenant(tenant="ada", weight=5.0, if_version="0" * 16)
    assert denial_of(stale, POOL, ADA) == "version_conflict"
    fresh = UpdateTenant(tenant="ada", weight=5.0, if_version=version_of(ADA))
    assert isinstance(decide_update(view_of(POOL, ADA), fresh), Grant)
    made = RegisterTenant(tenant="ada", default_pool="gpu", weight=5.0, if_version="absent")
    assert isinstance(decide_configuration(view_of(POOL), 4, made), Grant)
    retired = view_of(POOL, ADA, TenantRetired(tenant="ada"))
    assert isinstance(decide_configuration(retired, 4, made), Grant)
    denied = decide_configuration(view_of(POOL, ADA), 4, made)
    assert isinstance(denied, Denial) and denied.reason == "version_conflict"


def test_until_the_upgrade_is_finished_tenants_are_registered_without_bounds() -> None:
    plain = RegisterTenant(tenant="new", default_pool="gpu")
    for pool, bounds in ((OLD, None), (POOL, TenantBounds())):
        outcome = decide_configuration(view_of(pool), 4, plain)
        assert isinstance(outcome, Grant) and isinstance(outcome.event, TenantRegistered)
        assert outcome.event.bounds == bounds
