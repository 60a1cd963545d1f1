"""What admission is told at its start."""

from __future__ import annotations

from shared.settings import Settings


class AdmissionSettings(Settings):
    """Nothing of its own: quotas come by commands, pools and tenants from `access`."""
