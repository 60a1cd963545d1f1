"""The fields of a datagram as JSON text: what is wrong raises, and is then counted as lost."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

FORMAT = 1
CHECKPOINT = "checkpoint"
KINDS = ("train", "evaluation", "checkpoint")
"""Kinds of an iteration; the first is meant where none is named."""
MAX_BYTES = 1024
MAX_LABELS = 8
"""Phases of one iteration, and axes of a layout."""
LONGEST_S = 1e9
"""A longer time is not a measurement; infinity and NaN, which JSON lacks, are refused with it."""
LABEL = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


def head(token: str, rank: int, layout: Mapping[str, int] | None, **fields: str | int) -> str:
    """Return the beginning of each datagram of a process, up to the number of the step."""
    named: dict[str, object] = {**fields, "v": FORMAT, "token": token, "rank": rank}
    if layout:
        named["layout"] = {label(axis): int(place) for axis, place in bounded(layout).items()}
    return json.dumps({**named, "step": 0}, separators=(",", ":"))[:-2]


def seconds(value: float) -> str:
    """Return s as a JSON number. Raises ValueError."""
    number = float(value)
    if not 0 <= number < LONGEST_S:
        raise ValueError(f"not a time: {number}; 0 to {LONGEST_S} s are allowed")
    return f"{number:.9g}"


def phase_times(phases: Mapping[str, float]) -> str:
    """Return the phases as a JSON object. Raises ValueError."""
    parts = [f'"{label(name)}":{seconds(value)}' for name, value in bounded(phases).items()]
    return f"{{{','.join(parts)}}}"


@lru_cache(maxsize=256)
def label(name: str) -> str:
    """Return the name of a phase or an axis. Raises ValueError, TypeError."""
    if not LABEL.fullmatch(name):
        raise ValueError(f"not a name: {name!r}; {LABEL.pattern} is allowed")
    return name


def bounded(labels: Mapping[str, float]) -> Mapping[str, float]:
    """Return the labels. Raises ValueError if they are too many."""
    if len(labels) > MAX_LABELS:
        raise ValueError(f"too many names: {len(labels)}; {MAX_LABELS} are allowed")
    return labels


def kind_of(kind: str) -> str:
    """Return the kind of an iteration. Raises ValueError."""
    if kind not in KINDS:
        raise ValueError(f"not a kind: {kind!r}; one of {', '.join(KINDS)} is allowed")
    return kind


def encoded(text: str) -> bytes:
    """Return the datagram. Raises ValueError if it is too long for the agent."""
    data = text.encode()
    if len(data) > MAX_BYTES:
        raise ValueError(f"datagram too long: {len(data)} bytes; {MAX_BYTES} are allowed")
    return data
