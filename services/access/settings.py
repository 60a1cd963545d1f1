"""What access is told at its start."""

from __future__ import annotations

from shared.settings import Settings


class AccessSettings(Settings):
    """Nothing of its own: `partitions` is also how many pools and endpoints there may be."""
