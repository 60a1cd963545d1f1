"""How the gateway says no: RFC 9457, one shape for every error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from math import ceil

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from services.gateway.core.field_errors import FieldError, InvalidBody, NotJson, plain
from services.gateway.core.rate import Rate
from services.gateway.core.submission import TenantMismatch
from shared.contracts.base import Model
from shared.contracts.registry import Bearer

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2


class Problem(Model):
    """An RFC 9457 problem; `reason` is the machine-readable last part of `type`."""

    type: str = Field(description="`urn:berth:<reason>`")
    title: str = Field(description="for people")
    status: int = Field(description="the HTTP status")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="what happened this time")
    errors: tuple[FieldError, ...] = Field((), description="each field that is wrong")


class ApiError(Exception):
    """Raised anywhere below a route; answered as a Problem."""

    def __init__(
        self,
        status: int,
        reason: str,
        detail: str = "",
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or reason)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def unavailable(reason: str, detail: str) -> ApiError:
    """Not now; the same request may be repeated."""
    return ApiError(503, reason, detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def unauthenticated(detail: str, *, of_token: bool = False) -> ApiError:
    """Nobody we know."""
    said = 'Bearer realm="berth"' + (', error="invalid_token"' if of_token else "")
    return ApiError(401, "unauthenticated", detail, headers={"WWW-Authenticate": said})


def rate_limited(tenant: str, rate: Rate, wait_s: float) -> ApiError:
    """The tenant's bucket is empty; after `wait_s` seconds there is room for one request."""
    fault = FieldError(field="requests", rule=f"{rate}, for each tenant")
    told = f"{tenant} has asked too often; there is room again in {wait_s:.3f} s"
    return ApiError(429, "rate_limited", told, [fault], {"Retry-After": str(ceil(wait_s))})


class ForbiddenError(ApiError):
    """Somebody we know, who may not; `bearer` is for the record alone."""

    def __init__(self, bearer: Bearer, detail: str) -> None:
        super().__init__(403, "forbidden", detail)
        self.bearer = bearer


def not_found(what: str) -> ApiError:
    """Also said of what exists, but is another tenant's."""
    return ApiError(404, "not_found", f"no such {what}")


def problem_response(refusal: ApiError) -> Response:
    problem = Problem(
        type=f"urn:berth:{refusal.reason}",
        title=HTTPStatus(refusal.status).phrase,
        status=refusal.status,
        reason=refusal.reason,
        detail=refusal.detail[:1024],
        errors=refusal.errors,
    )
    body = problem.model_dump_json(exclude_none=True)
    return Response(body, refusal.status, refusal.headers, MEDIA_TYPE)


Noted = Callable[[Request, ApiError], None]


def install_problem_handlers(app: FastAPI, noted: Noted) -> None:
    """Every error of this application leaves as a Problem, and somebody notes it."""
    for kind, explain in _EXPLAIN.items():
        app.add_exception_handler(kind, _handler(explain, noted))


def _handler(
    explain: Callable[[Exception], ApiError], noted: Noted
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        refusal = explain(error)
        noted(request, refusal)
        if refusal.status == HTTPStatus.METHOD_NOT_ALLOWED:
            refusal.headers["Allow"] = ", ".join(_allowed(request))
        return problem_response(refusal)

    return handle


def _allowed(request: Request) -> list[str]:
    """Methods of every route at this path; the router itself names those of the first alone."""
    here = [each for each in request.app.routes if isinstance(each, Route)]
    there = [each for each in here if each.matches(request.scope)[0] is not Match.NONE]
    return sorted({method for route in there for method in route.methods or ()})


def _as_is(error: Exception) -> ApiError:
    assert isinstance(error, ApiError)
    return error


def _not_json(error: Exception) -> ApiError:
    return ApiError(400, "malformed", f"the body is no JSON object: {error}")


def _invalid(error: Exception) -> ApiError:
    assert isinstance(error, InvalidBody)
    return ApiError(422, "invalid", "the body breaks these rules", error.faults)


def _tenant_mismatch(error: Exception) -> ApiError:
    assert isinstance(error, TenantMismatch)
    return ApiError(403, "tenant_mismatch", "the body names another tenant", [error.fault])


def _bad_query(error: Exception) -> ApiError:
    assert isinstance(error, RequestValidationError)
    faults = [
        FieldError(
            field=str(each["loc"][-1]), value=plain(each.get("input")), rule=str(each["msg"])
        )
        for each in error.errors()
    ]
    return ApiError(422, "invalid", "the query breaks these rules", faults)


def _http(error: Exception) -> ApiError:
    assert isinstance(error, HTTPException)
    reason = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    return ApiError(error.status_code, reason, headers=error.headers)


def _internal(error: Exception) -> ApiError:
    return ApiError(500, "internal", type(error).__name__)


_EXPLAIN: dict[type[Exception], Callable[[Exception], ApiError]] = {
    ApiError: _as_is,
    NotJson: _not_json,
    InvalidBody: _invalid,
    TenantMismatch: _tenant_mismatch,
    RequestValidationError: _bad_query,
    HTTPException: _http,
    Exception: _internal,
}
