"""The time at which the next round is due."""

from __future__ import annotations

from services.placement.core.pool.state import Pool

SETTLE_MOST = 10
"""Further changes delay a round by at most this many times `settle_ms`, counted from the first."""


def due_at(pool: Pool) -> int | None:
    """Return the ms of the next round; None while no round could change anything."""
    if not (pool.waiting or pool.waiting_plans or pool.can_change()):
        return None
    if pool.open_round:
        return pool.open_round.until
    open_, due = pool.schedule.open, after_changes_at(pool)
    from_ms = pool.schedule.rounds_from()
    if open_ is None or from_ms is None:
        return due
    return open_.until if due is None else min(open_.until, max(due, from_ms))


def after_changes_at(pool: Pool) -> int | None:
    """Return the ms of the round that follows the last changes; None without changes.

    A contended pool has one round per `round_ms`. Where no waiting job was passed over the round
    does not wait for that: its cost is in proportion to the new jobs.
    """
    if pool.settings is None:
        return None
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
