"""Points in time, durations and fields of documents as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from cli.errors import BadInput
from cli.text.output import text_of

DAY_MS = 86_400_000
LABELS = {"gpu_ms": "gpu time"}
UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def clock(at_ms: object) -> str:
    """Return local time of day, with the date if older than a day; `-` for 0 or None."""
    if not isinstance(at_ms, int) or at_ms <= 0:
        return "-"
    local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
    recent = abs(age_ms(at_ms)) < DAY_MS
    return local.strftime("%H:%M:%S" if recent else "%Y-%m-%d %H:%M:%S")


def moment(at_ms: int) -> str:
    """Return a moment in UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def age_ms(at_ms: int, as_of: object = None) -> int:
    """Return the time since a point in time, ms, until `as_of` of an answer, else until now."""
    return (as_of if isinstance(as_of, int) else now_ms()) - at_ms


def now_ms() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)  # noqa: TID251


def span(ms: object) -> str:
    """Return a duration such as `1.2 s`, `3 min 20 s` or `5 h 12 min`."""
    if not isinstance(ms, (int, float)) or ms < 0:
        return "-"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"


def label(name: str) -> str:
    """Return the label of a field as text: without the unit, which its value has."""
    plain = name.removesuffix("_ms").replace("_", " ") if name.endswith("_ms") else name
    return LABELS.get(name, plain)


def field_text(name: str, value: object) -> str:
    """Return a field of a document as text: times and durations by its name, objects in words."""
    if name.endswith("_at") or name == "waiting_since":
        return clock(value)
    if name.endswith("_ms") and isinstance(value, (int, float)):
        return span(value)
    if name == "until":
        return clock(value)
    match value:
        case dict():
            pairs = (f"{label(key)} {field_text(key, item)}" for key, item in value.items())
            return ", ".join(pairs) or "-"
        case list() if any(isinstance(item, dict) for item in value):
            return "; ".join(field_text(name, item) for item in value)
    return text_of(value)


def fields_of(document: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a document as text; bounds and uses, which are objects, one a line."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from ((label(key), field_text(key, item)) for key, item in value.items())
        else:
            yield label(name), field_text(name, value)


def parse_span_s(text: str) -> int:
    """Return the seconds of a duration such as `90s`, `30m`, `1h` or `7d`. Raises BadInput."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([smhd])", text)
    if match is None:
        raise BadInput(f"duration: {text!r}; a whole number with s, m, h or d is allowed")
    return int(match[1]) * UNIT_S[match[2]]
