"""The settings of the throttle service."""

from __future__ import annotations

from pydantic import Field

from services.throttle.core.decide import QUEUE_LIMIT
from shared.server_settings import ServerSettings


class ThrottleSettings(ServerSettings):
    """The `BERTH_` variables of this service besides those of every service."""

    line: int = Field(
        default=QUEUE_LIMIT, ge=1, le=10_000, description="Limit of waiting requests per tenant"
    )
    tick_ms: int = Field(
        default=50,
        ge=1,
        le=10_000,
        description="Period of the emulated engine's progress reports, in ms",
    )
    prefill_tokens_per_s: float = Field(
        default=20_000.0, gt=0, le=1e9, description="Prompt speed of the emulated engine"
    )
    seed: int = Field(default=0, description="Seed of the lengths of the emulated answers")
