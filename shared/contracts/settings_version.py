"""The version of the settings of an object: a change names the one that it is based on."""

from __future__ import annotations

import hashlib

from shared.contracts.access import TenantRegistered
from shared.contracts.admission import QuotaChanged
from shared.contracts.base import ABSENT
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.pools import PoolConfigured
from shared.contracts.users import UserRegistered

DIGITS = 16
NO_SETTINGS = {"reason"}
"""Fields of these events that say why they were made."""
Versioned = PoolConfigured | EndpointConfigured | TenantRegistered | QuotaChanged | UserRegistered


def version_of(settings: Versioned | None) -> str:
    """Return the digest of the settings, or `ABSENT` without any.

    Defaults are left out, so that a setting of a later release changes no version.
    """
    if settings is None:
        return ABSENT
    text = settings.model_dump_json(exclude_defaults=True, exclude=NO_SETTINGS)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
