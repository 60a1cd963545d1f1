"""Errors of a body by field, value and rule, without repeating a secret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field, ValidationError

from shared.contracts.base import Model

MAX_VALUE_CHARS = 64
MAX_ERRORS = 20


class FieldError(Model):
    """One rule that one field breaks."""

    field: str = Field(description="dotted path; empty for the body as a whole")
    value: str | int | float | bool | None = Field(
        None, description="value as sent; absent if it is long, private or not a plain value"
    )
    rule: str = Field(description="rule that the value breaks")

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value!r}"
        return f"{self.field or 'body'}{shown}: {self.rule}"


class InvalidBody(Exception):
    """The body is JSON but not a valid message."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self.errors = tuple(errors[:MAX_ERRORS])
        super().__init__("; ".join(map(str, self.errors)))


class NotJson(Exception):
    """The bytes are not a JSON object."""


def field_errors_of(error: ValidationError, model: type[BaseModel]) -> list[FieldError]:
    return [
        _field_error(model, fault["loc"], fault["input"], fault["msg"])
        for fault in error.errors(include_url=False, include_context=False)
    ]


def _field_error(
    model: type[BaseModel], path: Iterable[str | int], value: object, rule: str
) -> FieldError:
    steps = [str(step) for step in path]
    shown = None if is_private(model, steps) else plain(value)
    return FieldError(
        field=".".join(steps)[:256], value=shown, rule=rule.removeprefix("Value error, ")
    )


def plain(value: object) -> str | int | float | bool | None:
    """Return the value if it is short, printable and a scalar; otherwise None."""
    match value:
        case bool() | int() | float():
            return value if abs(value) < 1e300 else None
        case str() if len(value) <= MAX_VALUE_CHARS and value.isprintable():
            return value
        case _:
            return None


def is_private(model: type[BaseModel], steps: Sequence[str]) -> bool:
    """True below a field that its contract marks as private."""
    current: type[BaseModel] | None = model
    for step in steps:
        field = current.model_fields.get(step) if current else None
        if field is None:
            return False
        if (field.description or "").endswith("private"):
            return True
        current = nested(field.annotation)
    return False


def nested(annotation: object) -> type[BaseModel] | None:
    """Return the model inside `Model`, `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (nested(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in models if model), None)
