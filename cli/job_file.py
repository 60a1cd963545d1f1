"""A job described by a file, by flags that override it, and by the command after `--`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from cli.errors import BadInput

Body = dict[str, object]
AROUND = ("idempotency_key", "pool", "tenant", "array_size")


def read(path: Path) -> Body:
    """Read a job from JSON or YAML, with or without the `spec` level."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from None
    document = _parsed(path, text)
    if not isinstance(document, dict) or not all(isinstance(name, str) for name in document):
        raise BadInput(f"{path}: a job must be an object")
    return _spelled_out(cast("Body", document))


def merged(body: Body, around: Mapping[str, object], spec: Mapping[str, object]) -> Body:
    """Return the body with flags applied; a flag that is None was not given."""
    set_around = {name: value for name, value in around.items() if value is not None}
    set_spec = {name: value for name, value in spec.items() if value not in (None, (), [])}
    old = cast("Body", body.get("spec") or {})
    gang = {**_object(old, "gang"), **_object(set_spec, "gang")}
    new = {name: value for name, value in {**old, **set_spec}.items() if name != "gang"}
    return {**body, **set_around, "spec": {**new, "gang": gang} if gang else new}


def _object(spec: Mapping[str, object], name: str) -> Body:
    value = spec.get(name) or {}
    if not isinstance(value, dict):
        raise BadInput(f"{name}: must be an object")
    return {key: item for key, item in value.items() if item is not None}


def _parsed(path: Path, text: str) -> object:
    if path.suffix.lower() in (".yaml", ".yml"):
        return _yaml(path, text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{path}: invalid JSON: {error}") from None


def _yaml(path: Path, text: str) -> object:
    try:
        import yaml
    except ModuleNotFoundError:
        raise BadInput(f"{path}: YAML needs the package pyyaml; use JSON instead") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: invalid YAML: {error}") from None


def _spelled_out(document: Body) -> Body:
    if "spec" in document:
        if not isinstance(document["spec"], dict):
            raise BadInput("spec: must be an object")
        return document
    around = {name: document[name] for name in AROUND if name in document}
    return {**around, "spec": {k: v for k, v in document.items() if k not in AROUND}}
