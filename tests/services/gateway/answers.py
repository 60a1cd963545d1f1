"""Compares answers of the gateway with their schemas in its OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import jsonschema_rs

from services.gateway.app import build
from tests.services.gateway.wired import gateway

Json = dict[str, Any]


class Operation(NamedTuple):
    """A route of the document; `pattern` matches its paths."""

    method: str
    path: str
    pattern: re.Pattern[str]
    responses: Json


@cache
def document() -> Json:
    """Return the OpenAPI document."""
    made: Json = build(gateway()).openapi()
    return made


@cache
def operations() -> tuple[Operation, ...]:
    """Return the routes, those with the fewest parameters and the most parts first."""
    made = [
        Operation(method.upper(), path, _pattern(path), operation["responses"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]
    return tuple(sorted(made, key=lambda one: (one.path.count("{"), -one.path.count("/"))))


def _pattern(path: str) -> re.Pattern[str]:
    # Names of endpoints and ids of faults and inputs hold slashes.
    deep = re.compile(r"\\{(endpoint|fault_id|plan_id|input_id|dead_id)\\}")
    text = deep.sub(".+", re.escape(path))
    return re.compile(re.sub(r"\\{\w+\\}", "[^/]+", text))


def check_answer(method: str, path: str, status: int, content: object) -> None:
    """Raise jsonschema_rs.ValidationError if a JSON answer differs from the schema of its route.

    Errors that no route describes, as those of unknown paths, are problems.
    """
    plain = urlsplit(path).path
    matching = [
        one for one in operations() if one.method == method and one.pattern.fullmatch(plain)
    ]
    described = matching[0].responses.get(str(status)) if matching else None
    if described is None and plain == "/openapi.json":
        return
    if described is None:
        assert 400 <= status < 500, f"{method} {plain}: answer {status} is not described"
        _validator("#/components/schemas/Problem").validate(content)
        return
    [schema] = [
        media["schema"] for name, media in described["content"].items() if name.endswith("json")
    ]
    _validator(schema["$ref"]).validate(content)


@cache
def _validator(ref: str) -> jsonschema_rs.Validator:
    schemas = {name: closed(schema) for name, schema in document()["components"]["schemas"].items()}
    return jsonschema_rs.validator_for({"$ref": ref, "components": {"schemas": schemas}})


def closed(schema: Json) -> Json:
    """Return the schema of an object without other fields: a new field has to be described."""
    return {**schema, "additionalProperties": False} if "properties" in schema else schema


def media_of_success() -> Iterator[tuple[str, str, Json]]:
    """Yield route, media type and schema of each answer that is no error."""
    for one in operations():
        for status, described in one.responses.items():
            if status.startswith("2"):
                for media, content in described.get("content", {"none": {}}).items():
                    schema = content.get("schema") or content.get("itemSchema") or {}
                    yield f"{one.method} {one.path}", media, schema
