"""Assigns lanes: a pool or an endpoint gets the lowest free partition and keeps it for ever."""

from __future__ import annotations

from collections.abc import Iterable


def lowest_free(taken: Iterable[int], lanes: int) -> int | None:
    """Return the lowest partition below `lanes` that is not taken, or None."""
    used = frozenset(taken)
    return next((lane for lane in range(lanes) if lane not in used), None)
