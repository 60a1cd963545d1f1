"""Every error of a route is answered as an RFC 9457 problem."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request

from services.gateway.core.field_errors import FieldError, InvalidBody, NotJson
from services.gateway.core.submission import TenantMismatch
from services.gateway.responses.problem import (
    ApiError,
    install_problem_handlers,
    not_found,
    problem_response,
    rate_limited,
    unauthenticated,
    unavailable,
)
from shared.http.rate import Rate

RAISED: dict[str, Exception] = {
    "not-json": NotJson("cut"),
    "invalid": InvalidBody([FieldError(field="gpus", rule="must be a number")]),
    "tenant": TenantMismatch("bob"),
    "busy": unavailable("reads_unavailable", "Postgres"),
    "missing": not_found("job"),
    "bug": KeyError("secret"),
}


@dataclass
class Answer:
    """A response, and the errors that the application reported."""

    observed: list[ApiError]
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def problem(self) -> dict[str, Any]:
        problem: dict[str, Any] = json.loads(self.body)
        return problem


def application(observed: list[ApiError]) -> FastAPI:
    app = FastAPI()
    install_problem_handlers(app, lambda request, error: observed.append(error))

    @app.get("/raise/{name}")
    async def fail(request: Request, name: str) -> None:
        raise RAISED[name]

    @app.get("/query")
    async def query(limit: int) -> None:
        return None

    router = APIRouter()

    @router.post("/query")
    async def change() -> None:
        return None

    app.include_router(router)
    return app


async def call(method: str, path: str, query: bytes = b"") -> Answer:
    answer = Answer([])
    scope = {"type": "http", "method": method, "path": path, "query_string": query, "headers": []}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        answer.status = message.get("status", answer.status)
        answer.headers |= {k.decode(): v.decode() for k, v in message.get("headers", ())}
        answer.body += message.get("body", b"")

    with suppress(KeyError):  # the server logs what no route expects
        await application(answer.observed)(scope, receive, send)
    return answer


@pytest.mark.parametrize(
    ("name", "status", "reason", "detail"),
    [
        ("not-json", 400, "malformed", "body is not a JSON object: cut"),
        ("invalid", 422, "invalid", "invalid request"),
        ("tenant", 403, "tenant_mismatch", "the body names another tenant"),
        ("busy", 503, "reads_unavailable", "Postgres"),
        ("missing", 404, "not_found", "job not found"),
        ("bug", 500, "internal", "KeyError"),
    ],
)
async def test_an_error_is_a_problem_with_its_reason(
    name: str, status: int, reason: str, detail: str
) -> None:
    answer = await call("GET", f"/raise/{name}")
    problem = answer.problem
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status, problem["status"]) == (status, status)
    assert (problem["reason"], problem["detail"]) == (reason, detail)
    assert problem["type"] == f"urn:berth:{reason}"
    assert [error.reason for error in answer.observed] == [reason]


async def test_fields_and_query_parameters_are_named() -> None:
    invalid = await call("GET", "/raise/invalid")
    assert invalid.problem["errors"][0]["field"] == "gpus"
    problem = (await call("GET", "/query", b"limit=many")).problem
    assert (problem["reason"], problem["errors"][0]["field"]) == ("invalid", "limit")


async def test_a_wrong_method_names_those_of_every_route_at_the_path() -> None:
    answer = await call("DELETE", "/query")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")
    assert (await call("GET", "/nowhere")).problem["reason"] == "not_found"


def test_an_error_that_may_be_repeated_says_when() -> None:
    assert unavailable("x", "").headers == {"Retry-After": "2"}
    limited = rate_limited("ada", Rate(10, 20), 1.2)
    assert (limited.status, limited.headers["Retry-After"]) == (429, "2")
    assert "retry in 1.200 s" in str(limited)


def test_a_challenge_says_whether_a_token_was_at_fault() -> None:
    assert "invalid_token" in unauthenticated("expired", of_token=True).headers["WWW-Authenticate"]
    assert "invalid_token" not in unauthenticated("unknown").headers["WWW-Authenticate"]


def test_a_long_detail_is_cut() -> None:
    body = json.loads(bytes(problem_response(ApiError(400, "malformed", "x" * 5000)).body))
    assert len(body["detail"]) == 1024
