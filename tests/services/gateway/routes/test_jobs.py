"""Filters and explanations of the queries of jobs."""

from __future__ import annotations

import pytest

from services.gateway.core.strict import Body
from services.gateway.responses.problem import ApiError
from services.gateway.routes.jobs import hide_others, placement_terms, tenant_filter, trace_id
from shared.contracts.registry import Bearer

ADA = Bearer("k1", "submitter", "ada")
OPERATOR = Bearer("k2", "operator", None)


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


def test_a_tenant_sees_no_id_of_the_jobs_of_others() -> None:
    detail = {"free_gpus": 2.0, "head": "j9", "outlasted_by": "j8"}
    data: Body = {"reason": "behind", "by_job_id": "j7", "detail": detail}
    hide_others(data)
    assert data == {"reason": "behind", "detail": {"free_gpus": 2.0}}
