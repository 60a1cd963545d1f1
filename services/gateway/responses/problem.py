"""Errors of the API as RFC 9457 problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from math import ceil

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route

from services.gateway.core.field_errors import FieldError, InvalidBody, NotJson, plain
from services.gateway.core.key_bounds import NotPermitted
from services.gateway.core.submission import TenantMismatch
from shared.contracts.base import Model
from shared.contracts.registry import Bearer
from shared.http.rate import Rate

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2


class Problem(Model):
    """An RFC 9457 problem; `reason` is the machine-readable last part of `type`."""

    type: str = Field(description="`urn:berth:<reason>`")
    title: str = Field(description="short description of the status")
    status: int = Field(description="HTTP status")
    reason: str = Field(description="machine-readable code in snake_case")
    detail: str = Field("", description="explanation of this occurrence")
    errors: tuple[FieldError, ...] = Field((), description="invalid fields")


class ApiError(Exception):
    """An error that is answered as a Problem; raised anywhere below a route."""

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
    """Return a 503; the same request may be repeated."""
    return ApiError(503, reason, detail, headers={"Retry-After": str(RETRY_AFTER_S)})


def unauthenticated(detail: str, *, of_token: bool = False) -> ApiError:
    """Return a 401 with its WWW-Authenticate header."""
    challenge = 'Bearer realm="berth"' + (', error="invalid_token"' if of_token else "")
    return ApiError(401, "unauthenticated", detail, headers={"WWW-Authenticate": challenge})


def rate_limited(tenant: str, rate: Rate, wait_s: float) -> ApiError:
    """Return a 429 for an empty bucket that has room for one request after `wait_s` seconds."""
    error = FieldError(field="requests", rule=f"{rate}, per tenant")
    detail = f"rate limit of tenant {tenant} exceeded; retry in {wait_s:.3f} s"
    return ApiError(429, "rate_limited", detail, [error], {"Retry-After": str(ceil(wait_s))})


def limited(of: str, rate: Rate, wait_s: float) -> ApiError:
    """Return a 429 for requests of another rate than a tenant's own."""
    detail = f"{of}: {rate}; retry in {wait_s:.3f} s"
    return ApiError(429, "rate_limited", detail, headers={"Retry-After": str(ceil(wait_s))})


class ForbiddenError(ApiError):
    """An authenticated bearer lacks the permission; `bearer` is kept for the audit alone."""

    def __init__(self, bearer: Bearer, detail: str) -> None:
        super().__init__(403, "forbidden", detail)
        self.bearer = bearer


def not_found(kind: str) -> ApiError:
    """Return a 404; also for an object of another tenant."""
    return ApiError(404, "not_found", f"{kind} not found")


def problem_response(error: ApiError) -> Response:
    problem = Problem(
        type=f"urn:berth:{error.reason}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        reason=error.reason,
        detail=error.detail[:1024],
        errors=error.errors,
    )
    body = problem.model_dump_json(exclude_none=True)
    return Response(body, error.status, error.headers, MEDIA_TYPE)


ErrorObserver = Callable[[Request, ApiError], None]


def install_problem_handlers(app: FastAPI, on_error: ErrorObserver) -> None:
    """Answer every error of the application as a Problem and report it to `on_error`."""
    for kind, explain in _EXPLAIN.items():
        app.add_exception_handler(kind, _handler(explain, on_error))


def _handler(
    explain: Callable[[Exception], ApiError], on_error: ErrorObserver
) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, raised: Exception) -> Response:
        error = explain(raised)
        on_error(request, error)
        if error.status == HTTPStatus.METHOD_NOT_ALLOWED:
            error.headers["Allow"] = ", ".join(_allowed(request))
        return problem_response(error)

    return handle


def _allowed(request: Request) -> list[str]:
    """Return the methods of all routes at this path; the router names those of the first alone.

    A parameter that may hold slashes also matches longer paths, which routes of their own have.
    """
    routes = _routes(request.app.routes)
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    parts = max((route.path.count("/") for route in matching), default=0)
    nearest = [route for route in matching if route.path.count("/") == parts]
    return sorted({method for route in nearest for method in route.methods or ()})


def _routes(routes: Iterable[BaseRoute]) -> Iterator[Route]:
    """Yield the routes of an application and of the routers that it includes without a prefix."""
    for route in routes:
        if isinstance(route, Route):
            yield route
        elif (router := getattr(route, "original_router", None)) is not None:
            yield from _routes(router.routes)


def _as_is(error: Exception) -> ApiError:
    assert isinstance(error, ApiError)
    return error


def _not_json(error: Exception) -> ApiError:
    return ApiError(400, "malformed", f"body is not a JSON object: {error}")


def _invalid(error: Exception) -> ApiError:
    assert isinstance(error, InvalidBody)
    return ApiError(422, "invalid", "invalid request", error.errors)


def _tenant_mismatch(error: Exception) -> ApiError:
    assert isinstance(error, TenantMismatch)
    return ApiError(403, "tenant_mismatch", "the body names another tenant", [error.error])


def _not_permitted(error: Exception) -> ApiError:
    assert isinstance(error, NotPermitted)
    return ApiError(403, "not_permitted", "the key or token does not permit it", [error.error])


def _bad_query(error: Exception) -> ApiError:
    assert isinstance(error, RequestValidationError)
    errors = [
        FieldError(
            field=str(fault["loc"][-1]), value=plain(fault.get("input")), rule=str(fault["msg"])
        )
        for fault in error.errors()
    ]
    return ApiError(422, "invalid", "invalid query", errors)


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
    NotPermitted: _not_permitted,
    RequestValidationError: _bad_query,
    HTTPException: _http,
    Exception: _internal,
}
