"""The event types of the placement ledger that an executor folds."""

from __future__ import annotations

from functools import cache

from shared.contracts.topics import CONSUMED_EVENTS

CONSUMED = frozenset(type_.rpartition(".")[0] for type_ in CONSUMED_EVENTS["executor"])
"""Wire types without their version."""


@cache
def is_consumed(wire_type: str) -> bool:
    """Return whether an executor folds a type, in any version; others are not decoded."""
    return wire_type.rpartition(".")[0] in CONSUMED
