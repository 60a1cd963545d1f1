"""Settings of fail-slow."""

from __future__ import annotations

from pydantic import Field

from services.failslow.core.measures.peers import Thresholds
from shared.process.settings import Settings


class FailSlowSettings(Settings):
    """`BERTH_` variables of this service."""

    slowdown: float = Field(
        default=1.2,
        gt=1,
        le=100,
        description="Multiple of the peers' median at which a worker is suspected",
    )
    window_ms: int = Field(
        default=200,
        ge=0,
        le=10_000,
        description="Window in which inputs are gathered, ms; no job waits for fail-slow",
    )
    reports: int = Field(
        default=3, ge=1, le=8, description="Reports in a row before a verdict, slow or healthy"
    )

    @property
    def limits(self) -> Thresholds:
        return Thresholds(slowdown=self.slowdown, reports=self.reports)
