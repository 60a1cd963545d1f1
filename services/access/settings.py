"""The settings of the access service."""

from __future__ import annotations

from shared.settings import Settings


class AccessSettings(Settings):
    """No settings of its own: `partitions` also bounds the pools and the endpoints."""
