"""Settings of the publisher."""

from __future__ import annotations

from pydantic import Field

from shared.process.settings import Settings


class PublisherSettings(Settings):
    """`BERTH_` variables of this service."""

    max_records: int = Field(
        default=1000, ge=1, le=100_000, description="Maximum ledger records per batch"
    )
    archive_every_h: float = Field(
        default=6.0,
        gt=0,
        le=8760,
        description="Hours after which what is new of a topic is archived",
    )
    refresh_s: float = Field(
        default=2.0,
        gt=0,
        le=3600,
        description="Interval of the search for new tenant topics, in seconds",
    )
