"""When the last event of a lane is published again, so that a restart finds the position in it."""

from __future__ import annotations

SHARES = 4
"""An event is published again after one of so many parts of the topic's retention."""


def is_quiet(written_ms: int, now_ms: int, retention_ms: int) -> bool:
    """Return whether a lane has had no event for so long that its last one is due again.

    A step of the host's clock in either direction costs a repeat, never the position.
    """
    return abs(now_ms - written_ms) >= retention_ms // SHARES
