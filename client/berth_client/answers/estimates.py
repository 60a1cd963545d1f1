"""Estimates of starts."""

from __future__ import annotations

from typing_extensions import TypedDict


class StartInterval(TypedDict):
    """When a waiting job will start, with 80 %; times in ms."""

    at: int
    """When it was estimated."""
    of: str
    """`job`: its own; `queue`: of the last waiting job of its size."""
    p10_at: int
    """With 10 % it starts before that."""
    p50_at: int
    """As likely as not it starts before that."""
    p90_at: int
    """With 90 % it starts before that."""
    coverage: float | None
    """Share of the pool's intervals that held; null: not known yet."""
    samples: int
    """Intervals that were judged."""
