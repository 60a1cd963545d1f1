"""The settings of the access service."""

from __future__ import annotations

from pydantic import Field

from services.access.core.decide import CREDENTIAL_DAYS
from shared.process.settings import Settings


class AccessSettings(Settings):
    """`BERTH_` variables of this service; `partitions` also bounds the pools and the endpoints."""

    node_credential_days: int = Field(
        default=CREDENTIAL_DAYS, ge=1, le=3650, description="Life of a node's credential, in days"
    )
