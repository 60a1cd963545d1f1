"""The fold of the access ledger: keys, tenants, pools and endpoints."""

from __future__ import annotations

import pytest

from shared.contracts.access import KeyCreated, KeyRevoked, TenantRegistered, TenantRetired
from shared.contracts.base import Event
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.enrolment import NodeTokenCreated
from shared.contracts.keys import hash_secret
from shared.contracts.pools import PoolConfigured
from shared.contracts.registry import AccessView, Bearer

KEY = KeyCreated(key_id="a.b", sha256=hash_secret("secret"), role="submitter", tenant="acme")


def view(*events: Event) -> AccessView:
    result = AccessView()
    for event in events:
        result.apply(event)
    return result


@pytest.mark.parametrize("text", ["", "a", "a.", ".a", ".", "a." + "x" * 600])
def test_a_malformed_key_has_no_bearer(text: str) -> None:
    assert view(KEY).authenticate(text) is None


def test_the_right_key_names_its_bearer() -> None:
    assert view(KEY).authenticate("a.b.secret") == Bearer("a.b", "submitter", "acme")


@pytest.mark.parametrize("text", ["a.b.wrong", "ghost.secret"])
def test_a_wrong_key_has_no_bearer(text: str) -> None:
    assert view(KEY).authenticate(text) is None


def test_a_revoked_key_has_no_bearer() -> None:
    assert view(KEY, KeyRevoked(key_id="a.b")).authenticate("a.b.secret") is None


def test_a_role_includes_the_lower_ones() -> None:
    operator = Bearer("k", "operator", None)
    assert operator.has_role("viewer")
    assert operator.has_role("operator")
    assert not operator.has_role("admin")


def test_a_retired_tenant_is_inactive_but_registered() -> None:
    acme = TenantRegistered(tenant="acme", default_pool="main")
    registry = view(acme, TenantRetired(tenant="acme"))
    assert not registry.is_active("acme")
    assert registry.default_pool("acme") == "main"
    registry.apply(acme)
    assert registry.is_active("acme")


def test_a_name_that_is_registered_again_has_no_keys_of_before() -> None:
    acme = TenantRegistered(tenant="acme", default_pool="main")
    other = KEY.model_copy(update={"key_id": "o", "tenant": "other"})
    registry = view(acme, KEY, other, acme, TenantRetired(tenant="acme"))
    assert registry.authenticate("a.b.secret"), "its jobs still run and are still its own"
    registry.apply(acme)
    assert registry.authenticate("a.b.secret") is None and registry.authenticate("o.secret")
    registry.apply(KEY.model_copy(update={"key_id": "new"}))
    registry.apply(acme)
    assert registry.authenticate("new.secret")


def test_tenants_of_older_records_are_numbered_in_the_order_of_the_ledger() -> None:
    names = ("acme", "beta", "acme", "gamma")
    old = [TenantRegistered(tenant=name, default_pool="main") for name in names]
    new = TenantRegistered(tenant="delta", default_pool="main", number=3)
    retired = TenantRetired(tenant="beta")
    registry = view(*old[:2], retired, *old[2:], new, old[1])
    numbers = {name: tenant.number for name, tenant in registry.tenants.items()}
    assert numbers == {"acme": 0, "beta": 1, "gamma": 2, "delta": 3}
    assert registry.number_of("epsilon") == 4


def test_a_pool_is_returned_by_its_name() -> None:
    main = PoolConfigured(partition=2, pool="main")
    registry = view(main, CommandAccepted(command_id="c", command_type="x"))
    assert registry.pool("main") == main
    assert registry.pool("other") is None
    assert registry.default_pool("ghost") is None


def test_an_endpoint_is_found_by_name() -> None:
    chat = EndpointConfigured(endpoint="chat", partition=0)
    assert view(chat).endpoint("chat") == chat


LLAMA = EndpointConfigured(
    endpoint="meta/Llama-3", partition=0, aliases=("chat",), adapters=("chat-de",)
)


@pytest.mark.parametrize("model", ["meta/Llama-3", "chat", "chat-de"])
def test_an_endpoint_is_found_by_each_of_its_names(model: str) -> None:
    assert view(LLAMA).endpoint(model) == LLAMA
    assert view(LLAMA).endpoint("meta") is None


def test_names_that_an_endpoint_gives_up_lead_nowhere() -> None:
    renamed = LLAMA.model_copy(update={"aliases": ("talk",)})
    registry = view(LLAMA, renamed)
    assert (registry.endpoint("chat"), registry.endpoint("talk")) == (None, renamed)
    registry.apply(EndpointDeleted(endpoint=LLAMA.endpoint, partition=0))
    assert [registry.endpoint(model) for model in renamed.models] == [None] * 3
    assert not registry.endpoints and not registry.endpoint_of_model
    registry.apply(EndpointDeleted(endpoint=LLAMA.endpoint, partition=0))


@pytest.mark.parametrize(
    ("models", "tenants", "model", "may"),
    [
        ((), (), "chat", True),
        ((), ("acme",), "chat", True),
        ((), ("other",), "chat", False),
        (("chat",), (), "chat", True),
        (("chat",), (), "chat-de", False),
        (("meta/Llama-3",), (), "chat-de", True),
        (("chat",), ("other",), "chat", False),
    ],
)
def test_key_and_tenant_together_decide_who_may_call_a_model(
    models: tuple[str, ...], tenants: tuple[str, ...], model: str, may: bool
) -> None:
    key = KEY.model_copy(update={"models": models})
    bearer = view(key).authenticate("a.b.secret")
    assert bearer is not None and bearer.models == models
    endpoint = LLAMA.model_copy(update={"tenants": tenants})
    assert bearer.may_call(model, endpoint) == may


def test_the_id_of_an_installation_is_that_of_its_first_secret() -> None:
    other = KeyCreated(key_id="o", sha256=hash_secret("other"), role="operator", tenant=None)
    token = NodeTokenCreated(
        token_id="t", sha256=hash_secret("token"), pool="gpu", expires_at=1, max_uses=None
    )
    assert view(TenantRegistered(tenant="acme", default_pool="main")).installation == ""
    made = {view(first).installation for first in (KEY, other, token)}
    assert len(made) == 3 and {len(id) for id in made} == {12}
    assert view(KEY, other, token, KeyRevoked(key_id="a.b")).installation == view(KEY).installation
    assert KEY.sha256[:12] != view(KEY).installation, "it tells nothing of the secret"
