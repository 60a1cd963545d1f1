"""What the gateway is told at its start."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shared.settings import Settings


class GatewaySettings(Settings):
    """`BERTH_` variables of this service."""

    host: str = Field(default="127.0.0.1", description="Where the API listens; loopback by default")
    port: int = Field(default=0, ge=0, le=65535, description="Port of the API; 0 = any free one")
    postgres: str = Field(default="", description="Read models; empty: reads answer 503")
    linger_ms: int = Field(
        default=3, ge=0, le=1000, description="How long commands are gathered into one append"
    )
    spans_from: Literal["loopback", "private"] = Field(
        default="loopback",
        description="Who may send spans: this machine, or a private network such as compose's",
    )
    metrics_of: str = Field(
        default="",
        pattern=r"^([a-z0-9-]+=[A-Za-z0-9.-]+:[0-9]{1,5}(,[a-z0-9-]+=[A-Za-z0-9.-]+:[0-9]{1,5})*)?$",
        description="Services of the page beside /metrics, as name=host:port,...",
    )
    streams: int = Field(
        default=64, ge=1, le=10_000, description="Open event and log streams, all clients together"
    )
    stream_queue: int = Field(
        default=2000, ge=1, le=1_000_000, description="Events a slow client may lag behind"
    )

    @property
    def scraped(self) -> dict[str, str]:
        """Service -> host:port of its metrics."""
        return dict(each.split("=", 1) for each in self.metrics_of.split(",") if each)
