"""Senders and idempotency keys of submissions."""

from __future__ import annotations

import pytest
from fastapi import Request

from services.gateway.core.field_errors import InvalidBody
from services.gateway.responses.problem import ApiError
from services.gateway.routes.submissions import idempotency_key, sender_for
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.registry import Bearer
from tests.services.gateway.wired import gateway

ADA = Bearer("k1", "submitter", "ada")
OPERATOR = Bearer("k2", "operator", None)
FACTS = (
    TenantRegistered(tenant="ada", default_pool="main"),
    TenantRegistered(tenant="bob", default_pool="side"),
    TenantRetired(tenant="bob"),
)


def request(*headers: tuple[bytes, bytes]) -> Request:
    return Request({"type": "http", "method": "POST", "headers": list(headers)})


def test_a_sender_is_the_bearers_tenant_whatever_the_body_names() -> None:
    access = gateway(*FACTS).access
    assert sender_for(access, ADA, "bob").tenant == "ada"
    assert sender_for(access, OPERATOR, "ada").default_pool == "main"


def test_an_operator_names_a_tenant_that_is_active() -> None:
    access = gateway(*FACTS).access
    with pytest.raises(InvalidBody, match="tenant is required"):
        sender_for(access, OPERATOR, None)
    for tenant in ("bob", "nobody"):
        with pytest.raises(ApiError, match="not registered or retired") as refused:
            sender_for(access, OPERATOR, tenant)
        assert refused.value.status == 403
        assert f"`berth tenants add {tenant} --pool POOL` registers it" in refused.value.detail


def test_the_key_of_a_retired_tenant_gets_no_command_of_operators() -> None:
    with pytest.raises(ApiError) as refused:
        sender_for(gateway(*FACTS).access, Bearer("k3", "submitter", "bob"), None)
    assert "berth tenants add" not in refused.value.detail


def test_the_idempotency_key_comes_from_the_header_or_is_new() -> None:
    assert idempotency_key(request((b"idempotency-key", b"h")), None) == "h"
    assert idempotency_key(request((b"idempotency-key", b"h")), "h") == "h"
    first, second = (idempotency_key(request(), None) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(("header", "field"), [(b"", None), (b"x" * 129, None), (b"h", "other")])
def test_a_key_that_is_no_key_or_differs_from_the_field_is_refused(
    header: bytes, field: str | None
) -> None:
    with pytest.raises(InvalidBody):
        idempotency_key(request((b"idempotency-key", header)), field)
