"""Settings of the placement service."""

from __future__ import annotations

from shared.settings import Settings


class PlacementSettings(Settings):
    """No settings of its own: leases, rounds and time-outs come with the pool, from `access`."""
