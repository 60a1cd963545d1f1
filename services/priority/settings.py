"""What priority is told at its start."""

from __future__ import annotations

from shared.settings import Settings


class PrioritySettings(Settings):
    """Nothing of its own: policies come with the pool's settings, from the access ledger."""
