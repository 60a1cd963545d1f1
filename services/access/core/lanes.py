"""Which partition belongs to whom: the lowest free one, fixed for ever."""

from __future__ import annotations

from collections.abc import Iterable


def lowest_free(taken: Iterable[int], lanes: int) -> int | None:
    used = frozenset(taken)
    return next((lane for lane in range(lanes) if lane not in used), None)
