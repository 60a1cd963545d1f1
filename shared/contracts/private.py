"""Removes private fields of events before publication."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from pydantic import BaseModel

from shared.contracts.base import EVENTS
from shared.contracts.codec import MODULES

Path = tuple[str, ...]

FOREIGN = "by_job_id"
"""Field that names another tenant's job, in an event that its own tenant reads."""


def private_paths(model: type[BaseModel]) -> Iterator[Path]:
    """Yield the paths of all fields that the contract marks as private, or that are foreign."""
    for name, field in model.model_fields.items():
        if name == FOREIGN or (field.description or "").endswith("private"):
            yield (name,)
        elif (inner := _nested(field.annotation)) is not None:
            yield from ((name, *path) for path in private_paths(inner))


def strip(data: bytes, paths: Sequence[Path]) -> bytes:
    """Return the JSON object without these fields."""
    body: object = msgspec.json.decode(data)
    for path in paths:
        _drop(body, path)
    return msgspec.json.encode(body)


def _drop(body: object, path: Path) -> None:
    for step in path[:-1]:
        body = body.get(step) if isinstance(body, dict) else None
    if isinstance(body, dict):
        body.pop(path[-1], None)


def _nested(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_nested(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in models if model), None)


PRIVATE: dict[str, tuple[Path, ...]] = {
    kind: paths
    for module in MODULES
    for kind, event in EVENTS.items()
    if event.__module__ == module.__name__ and (paths := tuple(private_paths(event)))
}
"""Paths of private fields by wire name; most events have none."""
