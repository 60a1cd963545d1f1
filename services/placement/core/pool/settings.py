"""Numbers that follow from a pool's settings alone, computed once per settings.

A round needs them at every turn, and settings change once in a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from services.placement.core.pool.loss_budget import share_of
from shared.contracts.checkpoint import wall_ms
from shared.contracts.pools import PoolConfigured

KEPT_MOST = 64
T = TypeVar("T")


def per_settings(compute: Callable[[PoolConfigured], T]) -> Callable[[PoolConfigured], T]:
    """Return the function with its results kept by identity of the settings, which are frozen: to
    hash or compare all of them would cost more than most results.
    """
    known: dict[int, tuple[PoolConfigured, T]] = {}

    def look_up(settings: PoolConfigured) -> T:
        kept = known.get(id(settings))
        if kept is not None and kept[0] is settings:
            return kept[1]
        if len(known) >= KEPT_MOST:
            known.clear()
        result = compute(settings)
        known[id(settings)] = settings, result
        return result

    return look_up


class PoolTimes(NamedTuple):
    """Settings of a pool in the units of its state: whole wall ms, and shares in whole numbers."""

    loss_share: int
    """Share of GPU time that stops may cost, in 1 / `loss_budget.SHARES`."""
    loss_window_ms: int
    min_residency_ms: int
    start_timeout_ms: int
    assumed_restart_ms: int
    """Length of a restart that is assumed until a job has shown its own."""


@per_settings
def times_of(settings: PoolConfigured) -> PoolTimes:
    """Return a pool's settings in the units of its state."""
    scale = settings.time_scale
    return PoolTimes(
        share_of(settings.loss_share),
        wall_ms(settings.loss_window_s, scale),
        wall_ms(settings.min_residency_s, scale),
        round(settings.start_timeout_s * 1000),
        wall_ms(settings.assumed_restart_s, scale),
    )
