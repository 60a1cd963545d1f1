"""A job described by a file, by flags that override it, and by the command after `--`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from cli.errors import BadInput
from cli.input.documents import Body, read_documents
from cli.input.numbers import ArrayRange

AROUND = ("idempotency_key", "pool", "tenant", "array_size")
OBJECTS = ("gang", "env")
"""Fields of which a flag replaces one entry, not the whole object."""


def read(path: Path) -> Body:
    """Read a job from JSON or YAML, `-` being stdin, with or without the `spec` level."""
    documents = read_documents(path)
    if len(documents) != 1:
        raise BadInput(f"{path}: {len(documents)} documents; one job is allowed")
    return _spelled_out(documents[0])


def merged(body: Body, around: Mapping[str, object], spec: Mapping[str, object]) -> Body:
    """Return the body with flags applied; a flag that is None was not given."""
    set_around = {name: value for name, value in around.items() if value is not None}
    set_spec = {name: value for name, value in spec.items() if value not in (None, (), [])}
    old = cast("Body", body.get("spec") or {})
    objects = {name: {**_object(old, name), **_object(set_spec, name)} for name in OBJECTS}
    new = {name: value for name, value in {**old, **set_spec}.items() if name not in OBJECTS}
    filled = {name: value for name, value in objects.items() if value}
    return {**body, **set_around, "spec": {**new, **filled}}


def with_array(body: Body, jobs: ArrayRange) -> Body:
    """Return the body with the jobs of `--array`, which replace the array of the file whole."""
    new = {"array_first": jobs.first or None, "array_at_once": jobs.at_once}
    kept = {name: value for name, value in cast("Body", body["spec"]).items() if name not in new}
    set_ = {name: value for name, value in new.items() if value is not None}
    return {**body, "array_size": jobs.size, "spec": {**kept, **set_}}


def parse_pools(text: str | None) -> list[str]:
    """Return the pools of `--pool POOL,POOL`. Raises BadInput."""
    pools = [] if text is None else text.split(",")
    if not all(pools) or len(set(pools)) < len(pools):
        raise BadInput(f"--pool: {text}; different names, separated by commas, are allowed")
    return pools


def variables(pairs: Sequence[str]) -> dict[str, str]:
    """Return the variables of `--env NAME=VALUE`. Raises BadInput."""
    split = [pair.partition("=") for pair in pairs]
    for name, equals, _ in split:
        if not name or not equals:
            raise BadInput(f"--env: {name or equals}; NAME=VALUE is allowed")
    return {name: value for name, _, value in split}


def _object(spec: Mapping[str, object], name: str) -> Body:
    value = spec.get(name) or {}
    if not isinstance(value, dict):
        raise BadInput(f"{name}: must be an object")
    return {key: item for key, item in value.items() if item is not None}


def _spelled_out(document: Body) -> Body:
    if "spec" in document:
        if not isinstance(document["spec"], dict):
            raise BadInput("spec: must be an object")
        return document
    around = {name: document[name] for name in AROUND if name in document}
    return {**around, "spec": {k: v for k, v in document.items() if k not in AROUND}}
