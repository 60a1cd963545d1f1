"""When a delivery that failed is tried again, and when it is given up."""

from __future__ import annotations

FIRST_MS = 5_000
LONGEST_MS = 3_600_000
GIVE_UP_MS = 24 * 3_600_000
"""Age of a state change at which it is not sent any more."""
DISABLE_MS = 5 * 24 * 3_600_000
"""Time without a success after which a webhook is disabled."""
MAX_WAITING = 5_000
"""Most notifications that wait for one webhook or user; further ones are dropped and counted."""


def delay_ms(attempts: int, chance: float) -> int:
    """Return the pause after so many failed attempts; `chance` in [0, 1) is the jitter.

    It doubles up to an hour, and half of it is random, so that a receiver that comes back is not
    met by all at once.
    """
    pause = min(FIRST_MS << min(attempts - 1, 20), LONGEST_MS)
    return round(pause * (0.5 + 0.5 * chance))


def is_too_old(at_ms: int, now_ms: int) -> bool:
    """Return whether a state change at that time is not worth sending any more."""
    return now_ms - at_ms >= GIVE_UP_MS
