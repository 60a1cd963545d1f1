"""OpenAPI descriptions of bodies and errors, which the routes themselves read and raise."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from services.gateway.responses.answers import describe_answers
from services.gateway.responses.problem import MEDIA_TYPE, Problem

REF = "#/components/schemas/{model}"
DESCRIPTIONS = {
    400: "The body is not a JSON object",
    401: "Missing or unknown key",
    403: "Role not sufficient, or the body names another tenant",
    404: "Not found, or owned by another tenant",
    409: "In conflict with what there is, as `reason` says",
    410: "What the request needs is no longer recorded",
    413: "Body larger than the bound that `detail` names: 64 KiB for most",
    415: "Body is not application/json",
    422: "Invalid request; `errors` names field, value and rule",
    429: "Rate limit exceeded; retry after Retry-After",
    503: "Kafka, or for reads Postgres, is unavailable; retry after Retry-After",
}
DESCRIPTION = """The control plane of a shared GPU cluster. Every change is a command: the answer is
202 with an id once the broker has acknowledged it, and `/v1/commands/{command_id}` shows the
decision. A gateway that shows a recorded simulation answers 409 to every command. Times are in
milliseconds since 1970. Errors are RFC 9457 problems."""

FASTAPI_ERRORS = ("HTTPValidationError", "ValidationError")

_bodies: dict[str, type[BaseModel]] = {}
Responses = dict[int | str, dict[str, Any]]


def problem_responses(*statuses: int) -> Responses:
    """Return the problem responses of a route; 401, 403, 429 and 503 belong to every route."""
    ref = {"$ref": REF.format(model=Problem.__name__)}
    return {
        status: {"description": DESCRIPTIONS[status], "content": {MEDIA_TYPE: {"schema": ref}}}
        for status in sorted({401, 403, 429, 503, *statuses})
    }


def answered_by(answer: Any) -> Responses:
    """Return the response 200 with the type of its answer: tests compare answers with it, the
    route does not."""
    return {200: {"model": answer}}


def read_route(answer: Any, *problems: int) -> dict[str, Any]:
    """Return the arguments of a route that reads; `problems` are its own statuses."""
    return {"responses": {**answered_by(answer), **problem_responses(*problems)}}


def request_body(*models: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """Return the description of a JSON body that is one of the models."""
    for model in models:
        _bodies[model.__name__] = model
    refs = [{"$ref": REF.format(model=model.__name__)} for model in models]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    body = {"required": required, "content": {"application/json": {"schema": schema}}}
    return {"requestBody": body}


WITHOUT_KEY: dict[str, Any] = {"security": []}
"""`openapi_extra` of a route that needs no key."""


def text_response(media_type: str) -> Responses:
    """Return the description of a response that is not JSON."""
    return {200: {"content": {media_type: {"schema": {"type": "string"}}}}}


def install_openapi(app: FastAPI) -> None:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _schema(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _schema(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.update(_definitions(Problem) | _forbid_unknown_fields(_definitions(*_bodies.values())))
    for name in FASTAPI_ERRORS:
        schemas.pop(name, None)
    describe_answers(schemas)
    _describe_problems(schema["paths"])
    _require_no_name_of_the_path(schema["paths"], schemas)
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "bearerFormat": "key_id.secret"}
    }
    schema["security"] = [{"key": []}]
    return schema


def _definitions(*models: type[BaseModel]) -> dict[str, Any]:
    requested = [(model, "validation") for model in models]
    _, document = models_json_schema(requested, ref_template=REF)  # type: ignore[arg-type]
    definitions: dict[str, Any] = document["$defs"]
    return definitions


def _forbid_unknown_fields(definitions: dict[str, Any]) -> dict[str, Any]:
    """Unknown fields are rejected in bodies, although readers of events ignore them."""
    for definition in definitions.values():
        if "properties" in definition:
            definition["additionalProperties"] = False
    return definitions


def _describe_problems(paths: dict[str, Any]) -> None:
    """Replace FastAPI's description of a bad parameter by the problem that clients receive."""
    for operation in (operation for path in paths.values() for operation in path.values()):
        content = operation["responses"].get("422", {}).get("content", {})
        if "application/json" in content:
            operation["responses"]["422"] = problem_responses(422)[422]


def _require_no_name_of_the_path(paths: dict[str, Any], schemas: dict[str, Any]) -> None:
    """The body of a change need not repeat what its path names."""
    for operation in (path["patch"] for path in paths.values() if "patch" in path):
        body = operation["requestBody"]["content"]["application/json"]["schema"]
        named = {parameter["name"] for parameter in operation.get("parameters", ())}
        definition = schemas[body["$ref"].rpartition("/")[2]]
        definition["required"] = [n for n in definition.get("required", ()) if n not in named]
