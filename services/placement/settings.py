"""What placement is told at its start."""

from __future__ import annotations

from shared.settings import Settings


class PlacementSettings(Settings):
    """Nothing of its own: leases, rounds and time-outs come with the pool, from `access`."""
