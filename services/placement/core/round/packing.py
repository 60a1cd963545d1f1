"""The policy of a pool's rounds: best fit, or by fragments where the pool says so."""

from __future__ import annotations

from dataclasses import replace

from services.placement.core.pool.state import Pool
from services.placement.core.round.greedy import GREEDY
from services.placement.core.round.view import Policy

FRAGMENTS = "fragments"


def policy_of(pool: Pool) -> Policy:
    """Return greedy's hooks, with the pool's way to place gangs."""
    if pool.settings is None or pool.settings.packing != FRAGMENTS:
        return GREEDY
    # numpy starts threads, which a fork of the supervisor would lose
    from services.placement.core.round.fragments import FragmentPacking

    packing = FragmentPacking(pool.recent_needs.counts)
    return replace(GREEDY, name=FRAGMENTS, place=packing.place)
