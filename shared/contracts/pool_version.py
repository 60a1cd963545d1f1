"""The version of a pool's settings: a change names the one that it is based on."""

from __future__ import annotations

import hashlib

from shared.contracts.pools import ABSENT, PoolConfigured

DIGITS = 16


def version_of(pool: PoolConfigured | None) -> str:
    """Return the digest of the settings, or `ABSENT` without a pool.

    Defaults are left out, so that a setting of a later release changes no version.
    """
    if pool is None:
        return ABSENT
    settings = pool.model_dump_json(exclude_defaults=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:DIGITS]
