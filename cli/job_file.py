"""A job as the user describes it: a file, flags over it, and the program behind `--`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from cli.errors import BadInput

Body = dict[str, object]
AROUND = ("idempotency_key", "pool", "tenant", "array_size")


def read(path: Path) -> Body:
    """JSON, or YAML where PyYAML is installed; both spellings of the API are taken."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from None
    found = _parsed(path, text)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise BadInput(f"{path}: a job is an object with named fields")
    return _spelled_out(cast("Body", found))


def merged(body: Body, around: Mapping[str, object], spec: Mapping[str, object]) -> Body:
    """Flags go before the file; what is None was not given."""
    known = {name: value for name, value in around.items() if value is not None}
    given = {name: value for name, value in spec.items() if value not in (None, (), [])}
    old = cast("Body", body.get("spec") or {})
    gang = {**_object(old, "gang"), **_object(given, "gang")}
    new = {name: value for name, value in {**old, **given}.items() if name != "gang"}
    return {**body, **known, "spec": {**new, "gang": gang} if gang else new}


def _object(spec: Mapping[str, object], name: str) -> Body:
    value = spec.get(name) or {}
    if not isinstance(value, dict):
        raise BadInput(f"{name}: is an object with named fields")
    return {key: each for key, each in value.items() if each is not None}


def _parsed(path: Path, text: str) -> object:
    if path.suffix.lower() in (".yaml", ".yml"):
        return _yaml(path, text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"{path}: no JSON: {error}") from None


def _yaml(path: Path, text: str) -> object:
    try:
        import yaml
    except ModuleNotFoundError:
        raise BadInput(f"{path}: YAML needs the package pyyaml; or write JSON") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: no YAML: {error}") from None


def _spelled_out(found: Body) -> Body:
    if "spec" in found:
        if not isinstance(found["spec"], dict):
            raise BadInput("spec: is an object with named fields")
        return found
    around = {name: found[name] for name in AROUND if name in found}
    return {**around, "spec": {k: v for k, v in found.items() if k not in AROUND}}
