"""When the next round is due."""

from __future__ import annotations

from services.placement.core.pool.state import Pool

SETTLE_MOST = 10
"""Changes may push a round off for so many times its `settle_ms`, counted from the first."""


def due_at(pool: Pool) -> int | None:
    """Return the ms of the next round; None while no round could change anything.

    Where no waiting job was passed over the next one need not wait: there is no queue to jump and
    the round is as long as the news. A contended pool has one round per `round_ms`.
    """
    if pool.settings is None or not (pool.waiting or pool.can_grow()):
        return None
    if pool.open_round is not None:
        return pool.open_round.until
    settled = settled_at(pool, pool.settings.settle_ms)
    if settled is None:
        return None
    undisturbed = pool.changed and pool.waiting and pool.unscanned == len(pool.waiting)
    return max(settled, pool.round_at + (0 if undisturbed else pool.settings.round_ms))


def settled_at(pool: Pool, settle_ms: int) -> int | None:
    """Return the ms when the changes have settled; the moment `again_at` is a change as well."""
    again = pool.again_at
    if not pool.changed:
        return None if again is None else again + settle_ms
    first, last = pool.first_change, pool.last_change
    if again is not None and again <= settle(first, last, settle_ms):
        first, last = min(first, again), max(last, again)
    return settle(first, last, settle_ms)


def settle(first: int, last: int, settle_ms: int) -> int:
    """Return the ms when changes between `first` and `last` ms have settled."""
    return min(last + settle_ms, first + SETTLE_MOST * settle_ms)
