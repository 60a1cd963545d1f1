"""A verified change of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Change:
    """A verified change of one job; `onset` and `at` are iteration numbers."""

    row: int
    kind: Literal["slow", "recovered"]
    onset: int
    at: int
    slowdown: float
    """Time per unit of work over the reference, before a recovery."""
    confidence: float
    score: float = 0.0
    """The shift in its standard errors."""
    level: float = 0.0
    """Reference, logarithm of seconds per unit of work."""
    count: int = 1
    """Iterations from the onset on."""
