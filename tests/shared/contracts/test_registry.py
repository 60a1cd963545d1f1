from __future__ import annotations

import pytest

from shared.contracts.access import (
    EndpointConfigured,
    KeyCreated,
    KeyRevoked,
    PoolConfigured,
    TenantRegistered,
    TenantRetired,
)
from shared.contracts.base import Event
from shared.contracts.jobs import CommandAccepted
from shared.contracts.keys import Key, format_key, hash_secret, parse_key, verify_secret
from shared.contracts.registry import AccessView, Bearer

KEY = KeyCreated(key_id="a.b", sha256=hash_secret("secret"), role="submitter", tenant="acme")


def view(*events: Event) -> AccessView:
    found = AccessView()
    for event in events:
        found.apply(event)
    return found


def test_a_key_is_an_id_that_may_hold_dots_and_a_secret_that_may_not() -> None:
    assert parse_key(format_key("a.b", "secret")) == Key("a.b", "secret")


@pytest.mark.parametrize("text", ["", "a", "a.", ".a", ".", "a." + "x" * 600])
def test_what_is_no_key_is_none(text: str) -> None:
    assert parse_key(text) is None
    assert view(KEY).authenticate(text) is None


def test_a_key_never_shows_its_secret() -> None:
    assert "secret" not in repr(Key("k", "secret"))


def test_a_secret_matches_its_own_hash_only() -> None:
    assert verify_secret("secret", hash_secret("secret"))
    assert not verify_secret("Secret", hash_secret("secret"))
    assert not verify_secret("\udc80", hash_secret("secret"))


def test_the_right_key_names_its_bearer() -> None:
    assert view(KEY).authenticate("a.b.secret") == Bearer("a.b", "submitter", "acme")


@pytest.mark.parametrize("text", ["a.b.wrong", "ghost.secret"])
def test_a_wrong_key_opens_nothing(text: str) -> None:
    assert view(KEY).authenticate(text) is None


def test_a_revoked_key_opens_nothing() -> None:
    assert view(KEY, KeyRevoked(key_id="a.b")).authenticate("a.b.secret") is None


def test_roles_are_a_ladder() -> None:
    operator = Bearer("k", "operator", None)
    assert operator.has_role("viewer")
    assert operator.has_role("operator")
    assert not operator.has_role("admin")


def test_a_retired_tenant_is_known_and_not_active() -> None:
    acme = TenantRegistered(tenant="acme", default_pool="main")
    found = view(acme, TenantRetired(tenant="acme"))
    assert not found.is_active("acme")
    assert found.default_pool("acme") == "main"
    assert list(found.active_tenants()) == []
    found.apply(acme)
    assert found.is_active("acme")
    assert list(found.active_tenants()) == [acme]


def test_pools_are_found_by_name_and_by_lane() -> None:
    main = PoolConfigured(partition=2, pool="main")
    found = view(main, CommandAccepted(command_id="c", command_type="x"))
    assert found.pool("main") == main
    assert found.pool_of_lane(2) == main
    assert found.pool("other") is None
    assert found.pool_of_lane(0) is None
    assert found.default_pool("ghost") is None


def test_an_endpoint_is_found_by_name() -> None:
    chat = EndpointConfigured(endpoint="chat", partition=0, tokens_per_s=50, batch_tokens=4096)
    assert view(chat).endpoint("chat") == chat
