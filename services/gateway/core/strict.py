"""Parses bodies strictly: an unknown field is an error."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import cache
from typing import TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from services.gateway.core.field_errors import (
    FieldError,
    InvalidBody,
    NotJson,
    field_errors_of,
    nested,
)

M = TypeVar("M", bound=BaseModel)
Body = dict[str, object]
NAMED = 12
"""Most fields that an error names."""


def parse_object(raw: bytes) -> Body:
    """Return the JSON object in the bytes; raises NotJson for anything else."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(str(error)) from None
    if not isinstance(body, dict):
        raise NotJson("expected a JSON object")
    return body


def parse_body(model: type[M], body: Body) -> M:
    """Return the body as a message; raises InvalidBody with all errors."""
    unknown = list(_faults(model, body, ""))
    try:
        message = model.model_validate_json(msgspec.json.encode(body), strict=True)
    except ValidationError as error:
        raise InvalidBody([*unknown, *field_errors_of(error, model)]) from None
    if unknown:
        raise InvalidBody(unknown)
    return message


def _faults(model: type[BaseModel] | None, value: object, path: str) -> Iterator[FieldError]:
    """Yield errors for unknown fields and for NUL, which Postgres cannot store."""
    match value:
        case str() if "\x00" in value:
            yield FieldError(field=path, rule="NUL characters are not allowed")
        case dict():
            yield from _field_faults(model, value, path)
        case list():
            for index, item in enumerate(value):
                yield from _faults(model, item, f"{path}.{index}")


def _field_faults(model: type[BaseModel] | None, body: Body, path: str) -> Iterator[FieldError]:
    known = _fields(model) if model else None
    for name, value in body.items():
        field = f"{path}.{name}" if path else name
        if "\x00" in name:
            yield FieldError(field=path, rule="NUL characters are not allowed in names")
        elif known is not None and name not in known:
            yield FieldError(field=field[:256], rule=_unknown(name, known))
        else:
            yield from _faults(known[name] if known else None, value, field)


def _unknown(name: str, known: Collection[str]) -> str:
    """Return the rule that an unknown field breaks, with the names that it may be meant for."""
    near = get_close_matches(name, known, 3)
    names = near or sorted(known)[:NAMED]
    others = " and others" if len(names) < len(known) else ""
    return f"unknown field; there are {', '.join(names)}{others}" if names else "unknown field"


@cache
def _fields(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    return {name: nested(field.annotation) for name, field in model.model_fields.items()}
