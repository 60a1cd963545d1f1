"""Every route describes its answers, and the columns of the read models are those described."""

from __future__ import annotations

from collections.abc import Mapping

import asyncpg
import pytest
from typing_extensions import is_typeddict

from berth_client import answers, waiting
from services.gateway.reads import job_queries, llm_queries, queries
from services.gateway.reads.database import JSON_COLUMNS
from services.gateway.responses.openapi import _bodies
from services.gateway.routes.overview import COUNTS
from shared.contracts.access import KeyBounds, Role
from shared.contracts.bounds import TenantBounds
from shared.projections.jobs import ENDED_PHASES, JobPhase
from tests.services.gateway.answers import document, media_of_success
from tests.services.gateway.stack import Stack

SQL_TYPES = {
    "string": {"text"},
    "integer": {"int4", "int8"},
    "number": {"float4", "float8"},
    "boolean": {"bool"},
    "array": {"int4[]", "int8[]", "text"},
    "object": {"text"},
}
NOT_STORED = {
    "as_of": "Node Job JobDetail",
    "identity": "Node",
    "trace_id": "JobDetail",
    "start": "JobDetail",
    "number": "Tenant",
    "llm_weight": "Tenant",
    "version": "Pool Endpoint QuotaDetail",
    "release": "Pool",
    "reason": "Pool",
    "open": "Pool Endpoint",
}
"""Fields that the gateway adds to rows."""
ROWS = {
    "Job": job_queries.JOBS,
    "JobDetail": job_queries.JOB,
    "JobEvent": queries.TIMELINE,
    "WaitReason": queries.WHY,
    "QueuePosition": queries.QUEUE_POSITION,
    "Node": queries.NODES,
    "QueuedJob": queries.QUEUE,
    "Allocation": queries.ALLOCATIONS,
    "Fault": queries.FAULTS,
    "Mitigation": queries.MITIGATION,
    "Tenant": queries.TENANTS,
    "QuotaDetail": queries.QUOTAS,
    "OpenJobs": job_queries.OPEN_JOBS,
    "Pool": queries.POOLS,
    "Endpoint": queries.ENDPOINTS,
    "CommandAnswer": queries.COMMAND,
    "DeadLetter": queries.DEAD,
    "AuditEntry": queries.AUDIT,
    "LlmRequest": llm_queries.LLM_REQUESTS,
    "LlmRejections": llm_queries.LLM_REJECTIONS,
    "FairnessGap": llm_queries.LLM_FAIRNESS,
}


def test_every_route_has_a_schema_for_each_answer() -> None:
    assert [(route, media) for route, media, schema in media_of_success() if not schema] == []


def test_every_json_answer_is_a_named_type() -> None:
    for route, media, schema in media_of_success():
        if media == "application/json" and route != "POST /v1/traces":
            assert "$ref" in schema, route


def test_a_body_and_an_answer_have_different_names() -> None:
    assert not _bodies.keys() & set(answers.__all__)


def test_fields_are_described_by_the_docstrings_below_them() -> None:
    fields = document()["components"]["schemas"]["SubmissionReceipt"]["properties"]
    assert fields["job_ids"]["description"] == "All jobs, in the order of the array."
    assert fields["trace_id"]["description"] == "Trace that begins with this request."


def test_values_and_bounds_are_those_of_the_contracts() -> None:
    assert answers.Phase == JobPhase
    assert waiting.ENDED == ENDED_PHASES
    assert answers.Role == Role
    assert answers.ArrayCounts.__annotations__.keys() == set(COUNTS)
    streams = {"max_streams", "max_key_streams"}
    assert answers.Bounds.__annotations__.keys() == TenantBounds.model_fields.keys() | streams
    assert answers.Key.__annotations__.keys() >= KeyBounds.model_fields.keys()


def kinds(schema: Mapping[str, object]) -> set[str]:
    """Return the JSON types that a field may have."""
    if "$ref" in schema:
        return {"object"}
    if isinstance(options := schema.get("anyOf"), list):
        return {kind for option in options for kind in kinds(option)}
    return {str(schema["type"])}


@pytest.mark.parametrize("name", ROWS)
async def test_the_columns_of_a_query_are_the_fields_of_its_rows(stack: Stack, name: str) -> None:
    assert is_typeddict(getattr(answers, name))
    described = document()["components"]["schemas"][name]["properties"]
    conn = await asyncpg.connect(stack.dsn, server_settings={"search_path": "berth"})
    try:
        prepared = await conn.prepare(ROWS[name])
        columns = {column.name: column.type.name for column in prepared.get_attributes()}
    finally:
        await conn.close()
    added = {field for field, types in NOT_STORED.items() if name in types.split()}
    assert columns.keys() == described.keys() - added
    for column, sql_type in columns.items():
        possible = kinds(described[column]) - {"null"}
        assert any(sql_type in SQL_TYPES[kind] for kind in possible), (column, sql_type, possible)
        if possible & {"array", "object"} and sql_type == "text":
            assert column in JSON_COLUMNS, column


def test_the_body_of_a_change_need_not_repeat_the_name_in_its_path() -> None:
    schemas, paths = document()["components"]["schemas"], document()["paths"]
    changes = [path["patch"]["requestBody"] for path in paths.values() if "patch" in path]
    assert len(changes) == 6
    for body in changes:
        name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        assert schemas[name]["required"] == [], name
