"""What the throttle is told at its start."""

from __future__ import annotations

from pydantic import Field

from services.throttle.core.decide import LINE
from shared.settings import Settings


class ThrottleSettings(Settings):
    """`BERTH_` variables of this service."""

    host: str = Field(default="127.0.0.1", description="Address that the proxy listens on")
    port: int = Field(default=0, ge=0, le=65535, description="Port of the proxy; 0 = any free one")
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
