"""The schedulers that a live pool can have: those whose decisions its rounds carry out."""

from __future__ import annotations

from collections.abc import Iterable

NODES = "nodes"
CARRIED_OUT = frozenset({"order", "type", "gpus", "share of time", NODES})
"""Decisions that a pool carries out. Of a scheduler that does not decide nodes it chooses them."""


def not_carried_out(decides: Iterable[str]) -> list[str]:
    """Return the decisions of a scheduler that no pool carries out."""
    return [name for name in decides if name not in CARRIED_OUT]
