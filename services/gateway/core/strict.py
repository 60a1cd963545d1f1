"""Bodies from outside: an unknown field is a mistake to name, not something to pass over."""

from __future__ import annotations

from collections.abc import Iterator
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


def parse_object(raw: bytes) -> Body:
    """The JSON object in these bytes; raises NotJson, whatever they are."""
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotJson(str(error)) from None
    if not isinstance(body, dict):
        raise NotJson("a JSON object is expected")
    return body


def parse_body(model: type[M], body: Body) -> M:
    """The body as this message; raises Invalid with every fault that was found."""
    unknown = list(_strange(model, body, ""))
    try:
        message = model.model_validate_json(msgspec.json.encode(body), strict=True)
    except ValidationError as error:
        raise InvalidBody([*unknown, *field_errors_of(error, model)]) from None
    if unknown:
        raise InvalidBody(unknown)
    return message


def _strange(model: type[BaseModel] | None, value: object, path: str) -> Iterator[FieldError]:
    """Fields that no contract knows, and the one character that Postgres cannot keep."""
    match value:
        case str() if "\x00" in value:
            yield FieldError(field=path, rule="may not hold a NUL character")
        case dict():
            yield from _strange_fields(model, value, path)
        case list():
            for index, each in enumerate(value):
                yield from _strange(model, each, f"{path}.{index}")


def _strange_fields(model: type[BaseModel] | None, body: Body, path: str) -> Iterator[FieldError]:
    known = _fields(model) if model else None
    for name, value in body.items():
        where = f"{path}.{name}" if path else name
        if "\x00" in name:
            yield FieldError(field=path, rule="a name may not hold a NUL character")
        elif known is not None and name not in known:
            yield FieldError(field=where[:256], rule="unknown field")
        else:
            yield from _strange(known[name] if known else None, value, where)


@cache
def _fields(model: type[BaseModel]) -> dict[str, type[BaseModel] | None]:
    return {name: nested(field.annotation) for name, field in model.model_fields.items()}
