"""The version of the settings of a pool or endpoint: a change names the one it is based on."""

from __future__ import annotations

import hashlib

from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.pools import ABSENT, PoolConfigured

DIGITS = 16


def version_of(settings: PoolConfigured | EndpointConfigured | None) -> str:
    """Return the digest of the settings, or `ABSENT` without any.

    Defaults are left out, so that a setting of a later release changes no version.
    """
    if settings is None:
        return ABSENT
    text = settings.model_dump_json(exclude_defaults=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
