"""The schedulers that a live pool can have: those whose decisions its rounds carry out."""

from __future__ import annotations

from collections.abc import Iterable

CARRIED_OUT = frozenset({"order", "type", "gpus", "share of time"})
"""Decisions that a pool carries out; on which nodes a gang is placed it decides itself."""


def not_carried_out(decides: Iterable[str]) -> list[str]:
    """Return the decisions of a scheduler that no pool carries out."""
    return [name for name in decides if name not in CARRIED_OUT]
