"""The settings of the admission service."""

from __future__ import annotations

from shared.settings import Settings


class AdmissionSettings(Settings):
    """No settings of its own: quotas come by commands, pools and tenants from `access`."""
