"""The version of an endpoint's settings: a change names the one that it is based on."""

from __future__ import annotations

import hashlib

from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.pools import ABSENT

DIGITS = 16


def endpoint_version(endpoint: EndpointConfigured | None) -> str:
    """Return the digest of the settings, or `ABSENT` without an endpoint.

    Defaults are left out, so that a setting of a later release changes no version.
    """
    if endpoint is None:
        return ABSENT
    settings = endpoint.model_dump_json(exclude_defaults=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:DIGITS]
