"""Until an upgrade is finished all settings are sent, as the release before reads them."""

from __future__ import annotations

import pytest

from services.gateway.requests.updates import (
    endpoint_command,
    pool_command,
    require_finished,
    tenant_command,
)
from services.gateway.responses.problem import ApiError
from shared.contracts.access import RegisterTenant, TenantRegistered, TenantRetired
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured
from shared.contracts.pools import RELEASE, ConfigurePool, PoolConfigured
from shared.contracts.registry import AccessView
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdateEndpoint, UpdatePool, UpdateTenant

POOL = PoolConfigured(pool="gpu", partition=2, backends=("agent",), mitigation="off")
CHAT = EndpointConfigured(endpoint="chat", partition=1, queue_limit=9)


def view_of(release: int) -> AccessView:
    view = AccessView()
    view.apply(POOL.model_copy(update={"release": release}))
    view.apply(CHAT)
    return view


def test_before_the_end_all_settings_are_sent_with_the_version_they_are_based_on() -> None:
    view = view_of(0)
    update = UpdatePool.model_validate({"pool": "gpu", "rank_ms": 7, "mitigation": None})
    command = pool_command(view, update)
    assert isinstance(command, ConfigurePool)
    assert (command.rank_ms, command.backends, command.mitigation) == (7, ("agent",), "off")
    assert command.if_version == version_of(view.pools["gpu"])
    changed = endpoint_command(view, UpdateEndpoint(endpoint="chat", drained=True))
    assert isinstance(changed, ConfigureEndpoint)
    assert (changed.queue_limit, changed.drained, changed.if_version) == (9, True, version_of(CHAT))
    with pytest.raises(ApiError, match="berth upgrade finish"):
        require_finished(view)


def test_afterwards_the_change_itself_is_sent() -> None:
    view = view_of(RELEASE)
    update, drain = UpdatePool(pool="gpu", rank_ms=7), UpdateEndpoint(endpoint="chat", drained=True)
    assert pool_command(view, update) is update and endpoint_command(view, drain) is drain
    require_finished(view)


def test_a_registration_of_a_tenant_that_exists_changes_what_it_names() -> None:
    again = RegisterTenant(tenant="ada", default_pool="gpu", max_grace_s=3600, if_version="absent")
    named = UpdateTenant(tenant="ada", default_pool="gpu", max_grace_s=3600, if_version="absent")
    view = view_of(RELEASE)
    assert tenant_command(view, again) is again, "a new tenant"
    view.apply(TenantRegistered(tenant="ada", default_pool="gpu", weight=3))
    change = tenant_command(view, again)
    assert change == named and change.model_fields_set == named.model_fields_set
    view.apply(TenantRetired(tenant="ada"))
    assert tenant_command(view, again) is again
    with pytest.raises(ApiError, match="a bound is possible after `berth upgrade finish`"):
        tenant_command(view_of(0), again)


def test_before_the_end_no_new_command_is_sent_and_no_early_value_is_dropped() -> None:
    view = view_of(0)
    with pytest.raises(ApiError, match="no such pool: cpu"):
        pool_command(view, UpdatePool(pool="cpu", rank_ms=7))
    with pytest.raises(ApiError, match="no such endpoint: voice"):
        endpoint_command(view, UpdateEndpoint(endpoint="voice", drained=True))
    with pytest.raises(ApiError, match="rank_changes: True: must be False until"):
        pool_command(view, UpdatePool(pool="gpu", rank_changes=True))
