"""What is wrong with a body, said by field, value and rule, without repeating a secret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field, ValidationError

from shared.contracts.base import Model

LONGEST_VALUE = 64
MAX_ERRORS = 20


class FieldError(Model):
    """One rule that one field breaks."""

    field: str = Field(description="where, as a dotted path; empty: the body as a whole")
    value: str | int | float | bool | None = Field(
        None, description="what was sent; absent where it is long, private or no plain value"
    )
    rule: str = Field(description="what it should have been")

    def __str__(self) -> str:
        shown = "" if self.value is None else f" = {self.value!r}"
        return f"{self.field or 'body'}{shown}: {self.rule}"


class InvalidBody(Exception):
    """The body is JSON, but no message of the kind that was asked for."""

    def __init__(self, faults: Sequence[FieldError]) -> None:
        self.faults = tuple(faults[:MAX_ERRORS])
        super().__init__("; ".join(map(str, self.faults)))


class NotJson(Exception):
    """The bytes are no JSON object."""


def field_errors_of(error: ValidationError, model: type[BaseModel]) -> list[FieldError]:
    return [
        _field_error(model, each["loc"], each["input"], each["msg"])
        for each in error.errors(include_url=False, include_context=False)
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
    """The value where a person could read it at a glance."""
    match value:
        case bool() | int() | float():
            return value if abs(value) < 1e300 else None
        case str() if len(value) <= LONGEST_VALUE and value.isprintable():
            return value
        case _:
            return None


def is_private(model: type[BaseModel], steps: Sequence[str]) -> bool:
    """True below a field whose contract calls it private: its values are nobody's business."""
    kind: type[BaseModel] | None = model
    for step in steps:
        field = kind.model_fields.get(step) if kind else None
        if field is None:
            return False
        if (field.description or "").endswith("private"):
            return True
        kind = nested(field.annotation)
    return False


def nested(annotation: object) -> type[BaseModel] | None:
    """The model inside `Model`, `Model | None` or `tuple[Model, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (nested(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in found if model), None)
