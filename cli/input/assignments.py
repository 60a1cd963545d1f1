"""Settings on the command line, NAME=VALUE: read, merged with those before, and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from cli.errors import BadInput

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

Settings = dict[str, object]
SHOWN_ALIKE, LEAST_LIKENESS = 3, 0.75
RULES = {"model_type": "a JSON object with its fields", "tuple_type": "a JSON list"}
"""Rules by pydantic's name of the fault, where its text names types of Python."""


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
            raise BadInput(f"unknown setting: {name}; {allowed_names(name, known)}")
        if name in changes:
            raise BadInput(f"given twice: {name}; one value is allowed")
        changes[name] = _value(name, text, isinstance(model.model_fields[name].default, tuple))
    return changes


def allowed_names(name: str, known: Sequence[str]) -> str:
    """Return the known names like an unknown one; all of them where none is like it."""
    alike = get_close_matches(name, known, SHOWN_ALIKE, LEAST_LIKENESS)
    if alike:
        return f"{' or '.join(alike)} is allowed, and {len(known) - len(alike)} others"
    return f"one of {', '.join(known)} is allowed"


def _value(name: str, text: str, is_list: bool) -> object:
    try:
        value = json.loads(text)
    except ValueError as error:
        if text.startswith(("[", "{")):
            raise BadInput(f"{name}: {text}; valid JSON is allowed: {error}") from None
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
    """Return a text per field: its path, its value, and each rule that would do."""
    rules: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_context=False):
        path = _path(fault["loc"])
        if fault["type"] == "missing":
            rules[f"{path}: missing; a value is required"] = []
        else:
            rule = _rule(fault["type"], fault["msg"])
            rules.setdefault(f"{path}: {fault['input']!r}", []).append(rule)
    return [
        f"{value}; {' or '.join(rule)} is allowed" if rule else value
        for value, rule in rules.items()
    ]


def _path(steps: tuple[int | str, ...]) -> str:
    """Return the setting, or the field of one in a list; later steps are branches of unions."""
    is_field = len(steps) > 2 and isinstance(steps[1], int)
    return ".".join(str(step) for step in steps[: 3 if is_field else 1])


def _rule(kind: str, message: str) -> str:
    """Return a rule of pydantic as what is allowed."""
    if kind in RULES:
        return RULES[kind]
    rule = message.removeprefix("Input should be ").partition(", unable")[0]
    verb = {"match": "matches", "have": "has"}
    return re.sub(
        r"^(\w+) should (match|have) ",
        lambda match: f"a {match[1].lower()} that {verb[match[2]]} ",
        rule,
    )
