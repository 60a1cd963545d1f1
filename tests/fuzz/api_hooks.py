"""Hooks for Schemathesis: names that exist, so that requests pass the first refusal."""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from typing import Any

import schemathesis

from tests.fuzz.api_fuzzer import EVERY_WRONG_TYPE
from tests.fuzz.canary import CANARY

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
VERSION = re.compile(r"absent|[0-9a-f]{16}")
KNOWN = {
    "pool": ("main", "side"),
    "tenant": ("ada", "bob"),
    "endpoint": ("llama",),
    "job_id": ("adas", "bobs"),
    "command_id": ("c-adas", "c-bobs"),
}


_wrong_types: Counter[str] = Counter()
"""Values of wrong types so far, by operation and field."""


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Keep the first wrong type of each field, and a third of its others, another one on each route
    and for each field: they are two fifths of all cases, and one validation refuses them."""
    phase: Any = case.meta.phase.data if case.meta else None
    if getattr(phase, "scenario", "") != "incorrect_type" or EVERY_WRONG_TYPE in os.environ:
        return True
    field = f"{case.operation.label} {phase.parameter_location} {phase.parameter} {phase.location}"
    number = _wrong_types[field]
    _wrong_types[field] += 1
    return number == 0 or (number + zlib.crc32(field.encode())) % 3 == 0


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """Half of the well-formed names become known ones; malformed ones stay as they are."""
    return _known(body)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Leave out a well-formed `if_version`: the service access, which answers it, does not run."""
    body = case.body
    if isinstance(body, dict) and VERSION.fullmatch(str(body.get("if_version"))):
        case.body = {name: value for name, value in body.items() if name != "if_version"}


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """As `map_body`; and no request follows a stream for ever."""
    if isinstance(query, dict) and "follow" in query:
        query = {**query, "follow": "false"}
    return _known(query)


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    return _known(path_parameters)


@schemathesis.check
def nothing_of_another_tenant(context: Any, response: Any, case: Any) -> None:
    """A key of ada's opens nothing of bob's; operators see all."""
    if os.environ.get("BERTH_FUZZ_TENANT") and CANARY in response.content:
        raise AssertionError("ada was shown what is bob's")


def _known(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    return {name: _renamed(name, value) for name, value in fields.items()}


def _renamed(name: str, value: Any) -> Any:
    known = KNOWN.get(name, ())
    if not known or not isinstance(value, str) or not NAME.fullmatch(value):
        return value
    chance = zlib.crc32(value.encode())
    return known[chance // 2 % len(known)] if chance % 2 else value
