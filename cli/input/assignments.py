"""Settings on the command line, NAME=VALUE: read, merged with those before, and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cli.errors import BadInput

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Settings = dict[str, object]


def parse_assignments(
    words: Sequence[str], model: type[BaseModel], hidden: frozenset[str] = frozenset()
) -> Settings:
    """Return the settings by name: JSON values, words, or words with commas. Raises BadInput."""
    known = sorted(model.model_fields.keys() - hidden)
    changes: Settings = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise BadInput(f"no value: {word}; NAME=VALUE is allowed")
        if name not in known:
            raise BadInput(f"unknown setting: {name}; one of {', '.join(known)} is allowed")
        if name in changes:
            raise BadInput(f"given twice: {name}; one value is allowed")
        changes[name] = _value(text, isinstance(model.model_fields[name].default, tuple))
    return changes


def _value(text: str, is_list: bool) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if is_list and isinstance(value, str):
        return [part for part in value.split(",") if part]
    return value


def merge_settings(
    model: type[BaseModel], before: Mapping[str, object], changes: Settings
) -> Settings:
    """Return the body that sets the changes and keeps what was set before. Raises BadInput.

    A value of None is left out: the setting gets its default.
    """
    from pydantic import ValidationError

    merged = {**before, **changes}
    body = {
        name: value
        for name, value in merged.items()
        if name in model.model_fields and value is not None
    }
    try:
        model.model_validate(body)
    except ValidationError as error:
        raise BadInput("; ".join(faults_of(error))) from None
    return body


def faults_of(error: ValidationError) -> list[str]:
    """Return a text per setting: its name, its value, and each rule that would do."""
    rules: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_context=False):
        rule = fault["msg"].removeprefix("Input should be ").partition(", unable")[0]
        rules.setdefault(f"{fault['loc'][0]}: {fault['input']!r}", []).append(rule)
    return [f"{value}; {' or '.join(rule)} is allowed" for value, rule in rules.items()]
