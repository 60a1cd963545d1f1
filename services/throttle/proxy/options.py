"""The headers by which a client says more about a request than the OpenAI API has fields for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.throttle.relay.errors import refuse

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
MOST_CLASS = 15
MOST_FIRST_TOKEN_MS = 86_400_000
MOST_DIGITS = 10
"""Digits of a number, with leading zeros: Python refuses to read thousands of them."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """The headers `x-berth-*` of a request; all are optional."""

    application: str = "default"
    interaction: str = ""
    """Id of the interaction that the call continues."""
    priority: int = 0
    """Classes that go before it."""
    first_token_ms: int | None = None
    """Objective of the time to the first token."""


def read_options(headers: Mapping[str, str]) -> RequestOptions:
    """Read the options of a request. Raises ErrorAnswer for a value that breaks its rule."""
    application = headers.get("x-berth-application", "default")
    if not NAME.fullmatch(application):
        raise _invalid("x-berth-application", "a name of a-z, 0-9, '.', '_' and '-'")
    interaction = headers.get("x-berth-interaction", "")
    if interaction and not ID.fullmatch(interaction):
        raise _invalid("x-berth-interaction", "an id of 1 to 64 letters, digits and ._:-")
    priority = _number(headers, "x-berth-priority", 0, MOST_CLASS)
    first_token_ms = _number(headers, "x-berth-first-token-ms", 1, MOST_FIRST_TOKEN_MS)
    return RequestOptions(application, interaction, priority or 0, first_token_ms)


def _number(headers: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    if not (is_number and least <= int(text) <= most):
        raise _invalid(name, f"an integer from {least} to {most}")
    return int(text)


def _invalid(name: str, rule: str) -> Exception:
    return refuse("invalid_body", f"{name}: invalid; {rule} is required", param=name)
