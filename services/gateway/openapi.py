"""What OpenAPI says of bodies and errors, which the routes read and raise by themselves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from services.gateway.problem import MEDIA_TYPE, Problem

REF = "#/components/schemas/{model}"
DESCRIPTIONS = {
    400: "The body is no JSON object",
    401: "No key, or none that is known",
    403: "The key may not do this, or the body names another tenant",
    404: "No such thing, or another tenant's",
    413: "The body has more than 64 KiB",
    415: "The body is not application/json",
    422: "A field breaks a rule; `errors` names field, value and rule",
    429: "The tenant asks too often; come back after Retry-After",
    503: "Kafka, or for reads Postgres, is away; come back after Retry-After",
}
DESCRIPTION = """The control plane of a shared GPU cluster. Every change is a command: the answer is
202 with an id once the broker has acknowledged it, and `/v1/commands/{command_id}` shows the
decision. A gateway that shows a recorded simulation answers 409 to every command. Times are in
milliseconds since 1970. Errors are RFC 9457 problems."""

FASTAPI_ERRORS = ("HTTPValidationError", "ValidationError")

_bodies: dict[str, type[BaseModel]] = {}
Responses = dict[int | str, dict[str, Any]]


def problem_responses(*statuses: int) -> Responses:
    """The problems that a route may answer; every route may answer 401, 429 and 503."""
    ref = {"$ref": REF.format(model=Problem.__name__)}
    return {
        status: {"description": DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": ref}}}
        for status in sorted({401, 403, 429, 503, *statuses})
    }


def request_body(*models: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """The JSON body of a route: one of these."""
    for model in models:
        _bodies[model.__name__] = model
    refs = [{"$ref": REF.format(model=model.__name__)} for model in models]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    body = {"required": required, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body}


WITHOUT_KEY: dict[str, Any] = {"security": []}
"""For `openapi_extra` of a route that anybody may ask."""


def text_response(media_type: str) -> Responses:
    """What a route says where that is not JSON."""
    return {200: {"content": {media_type: {"schema": {"type": "string"}}}}}


def install_openapi(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _schema(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(_definitions(Problem) | _closed(_definitions(*_bodies.values())))
    for name in FASTAPI_ERRORS:
        schemas.pop(name, None)
    _say_problems(found["paths"])
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "bearerFormat": "key_id.secret"}
    }
    found["security"] = [{"key": []}]
    return found


def _definitions(*models: type[BaseModel]) -> dict[str, Any]:
    wanted = [(model, "validation") for model in models]
    _, found = models_json_schema(wanted, ref_template=REF)  # type: ignore[arg-type]
    definitions: dict[str, Any] = found["$defs"]
    return definitions


def _closed(definitions: dict[str, Any]) -> dict[str, Any]:
    """A body's unknown field is refused, though readers of events pass it over."""
    for each in definitions.values():
        if "properties" in each:
            each["additionalProperties"] = False
    return definitions


def _say_problems(paths: dict[str, Any]) -> None:
    """FastAPI's own word for a bad parameter is not what a client gets."""
    for operation in (each for path in paths.values() for each in path.values()):
        said = operation["responses"].get("422", {}).get("content", {})
        if "application/json" in said:
            operation["responses"]["422"] = problem_responses(422)[422]
