"""Senders, filters and explanations of the routes of jobs."""

from __future__ import annotations

import pytest
from fastapi import Request

from services.gateway.core.field_errors import InvalidBody
from services.gateway.core.submission import JobBody
from services.gateway.problem import ApiError
from services.gateway.routes.jobs import (
    _idempotency_key,
    placement_terms,
    sender_for,
    tenant_filter,
    trace_id,
)
from shared.contracts.access import TenantRegistered, TenantRetired
from shared.contracts.jobs import JobSpec
from shared.contracts.registry import Bearer
from tests.services.gateway.wired import gateway

ADA = Bearer("k1", "submitter", "ada")
OPERATOR = Bearer("k2", "operator", None)
FACTS = (
    TenantRegistered(tenant="ada", default_pool="main"),
    TenantRegistered(tenant="bob", default_pool="side"),
    TenantRetired(tenant="bob"),
)


def submission(idempotency_key: str | None = None) -> JobBody:
    return JobBody(spec=JobSpec(name="j"), idempotency_key=idempotency_key)


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


def test_the_idempotency_key_comes_from_the_header_or_is_new() -> None:
    assert _idempotency_key(request((b"idempotency-key", b"h")), submission()) == "h"
    assert _idempotency_key(request((b"idempotency-key", b"h")), submission("h")) == "h"
    first, second = (_idempotency_key(request(), submission()) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(("header", "field"), [(b"", None), (b"x" * 129, None), (b"h", "other")])
def test_a_key_that_is_no_key_or_differs_from_the_field_is_refused(
    header: bytes, field: str | None
) -> None:
    with pytest.raises(InvalidBody):
        _idempotency_key(request((b"idempotency-key", header)), submission(field))


def test_a_tenant_filters_by_itself_and_an_operator_by_any_tenant() -> None:
    assert tenant_filter(ADA, None) == tenant_filter(ADA, "ada") == "ada"
    assert (tenant_filter(OPERATOR, None), tenant_filter(OPERATOR, "bob")) == (None, "bob")
    with pytest.raises(ApiError, match="tenant not found"):
        tenant_filter(ADA, "bob")


def test_the_trace_id_is_the_second_part_of_a_traceparent() -> None:
    assert trace_id({"traceparent": "00-abc-def-01"}) == "abc"
    assert trace_id({"traceparent": ""}) == trace_id({}) == trace_id({"traceparent": "00-a"}) == ""


def test_a_placement_is_explained_by_its_policy_terms_and_nodes() -> None:
    data = {
        "allocations": [{"node_id": "b"}, {"node_id": "a"}, {"node_id": "b"}],
        "policy": "fcfs",
        "waited_ms": 7,
        "env": "hidden",
    }
    terms = placement_terms({"at": 5, "data": data})
    assert terms is not None
    assert (terms["at"], terms["policy"], terms["waited_ms"]) == (5, "fcfs", 7)
    assert (terms["nodes"], terms["score"]) == (["a", "b"], None)
    assert "env" not in terms


def test_a_job_without_a_placement_has_no_terms() -> None:
    assert placement_terms(None) is None
    assert placement_terms({"at": 5, "data": "undecoded"}) is None
