"""Moments on the command line: a day, a time of day, or a time before an end."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.errors import BadInput
from cli.text.times import parse_span_s

RULE = "a moment such as 2026-11-01 or 2026-11-01T08:30 (UTC), or a duration before the end"


def parse_moment_ms(option: str, text: str, end_ms: int) -> int:
    """Return a moment, wall ms; a duration such as `7d` is so long before `end_ms`.

    Raises BadInput.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    try:
        return end_ms - 1000 * parse_span_s(text)
    except BadInput:
        raise BadInput(f"{option}: {text!r}; {RULE}, such as 7d, is allowed") from None
