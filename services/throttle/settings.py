"""What the throttle is told at its start."""

from __future__ import annotations

from pydantic import Field

from services.throttle.core.decide import LINE
from shared.listening import Listening


class ThrottleSettings(Listening):
    """`BERTH_` variables of this service."""

    line: int = Field(
        default=LINE, ge=1, le=10_000, description="Requests of one tenant that may wait"
    )
    tick_ms: int = Field(
        default=50, ge=1, le=10_000, description="How often the emulated engine tells its progress"
    )
    prefill_tokens_per_s: float = Field(
        default=20_000.0, gt=0, le=1e9, description="Prompt speed of the emulated engine"
    )
    seed: int = Field(default=0, description="Of the lengths of the emulated answers")
