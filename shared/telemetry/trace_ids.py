"""W3C trace context as plain strings: created, continued and strictly parsed without the SDK."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from shared.telemetry.names import continues_trace

MAX_CHARS = 512
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})"
    r"-([0-9a-f]{2})(?P<tail>-[\x20-\x7e]*)?"
)


class TraceParent(NamedTuple):
    """The ids of a trace and of one of its spans, in lower-case hex."""

    trace_id: str
    span_id: str
    flags: int

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags:02x}"


def parse(traceparent: object) -> TraceParent | None:
    """Return the parsed traceparent, None if it is malformed; never raises."""
    if not isinstance(traceparent, str) or len(traceparent) > MAX_CHARS:
        return None
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None or (match["version"] == "00" and match["tail"] is not None):
        return None
    return TraceParent(match[2], match[3], int(match[4], 16))


def new_traceparent() -> str:
    """Return the traceparent of the root of a new trace."""
    return f"00-{_nonzero_hex(16)}-{_nonzero_hex(8)}-01"


def child_of(traceparent: str) -> str:
    """Return a new span in the same trace; in a new one if `traceparent` is empty or malformed.

    It is always sampled, also if the caller's was not: every job's trace must be complete.
    """
    parent = parse(traceparent)
    if parent is None:
        return new_traceparent()
    return f"00-{parent.trace_id}-{_nonzero_hex(8)}-01"


def for_event(wire_type: str, cause_traceparent: str) -> str:
    """Return a decision's traceparent: in its cause's trace until the job starts, else a root."""
    return child_of(cause_traceparent) if continues_trace(wire_type) else new_traceparent()


def _nonzero_hex(n_bytes: int) -> str:
    """Return random digits: ids have to differ, and need not be hard to guess."""
    while not (number := random.getrandbits(8 * n_bytes)):
        continue
    return f"{number:0{2 * n_bytes}x}"
