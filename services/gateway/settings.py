"""Settings of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.gateway.limits.stream_places import StreamLimits
from shared.http.server_settings import NodeExecutors, addresses_of
from shared.oidc.settings import OidcSettings


class GatewaySettings(OidcSettings):
    """`BERTH_` variables of this service."""

    postgres: str = Field(
        default="", description="Address of the read models; reads answer 503 if not given"
    )
    tls_ca: Path | None = Field(
        default=None,
        description="CA of the servers' certificates, PEM; nodes that joined with `--ca` take it "
        "with their next renewal",
    )
    linger_ms: int = Field(
        default=3, ge=0, le=1000, description="Time to gather commands for one append, in ms"
    )
    spans_from: Literal["loopback", "private"] = Field(
        default="loopback",
        description="Senders of spans that are accepted: this machine, or any private network",
    )
    metrics_of: str = Field(
        default="",
        pattern=r"^([a-z0-9-]+=[A-Za-z0-9.-]+:[0-9]{1,5}(,[a-z0-9-]+=[A-Za-z0-9.-]+:[0-9]{1,5})*)?$",
        description="Services on the page beside /metrics, as name=host:port,...",
    )
    streams: int = Field(
        default=256, ge=1, le=10_000, description="Maximum number of open event and log streams"
    )
    tenant_streams: int = Field(
        default=32, ge=1, le=10_000, description="Maximum number of those of one tenant"
    )
    key_streams: int = Field(
        default=16, ge=1, le=10_000, description="Maximum number of those of one user or key"
    )
    stream_queue: int = Field(
        default=2000,
        ge=1,
        le=1_000_000,
        description="Maximum number of events that a slow client may lag",
    )
    recorded: bool = Field(
        default=False, description="Serve a recorded simulation; every command is rejected"
    )
    recorded_at: int = Field(
        default=0,
        ge=0,
        description="Its last moment, in ms, up to which running times count; now if not given",
    )
    tenant_rate: float = Field(
        default=200,
        gt=0,
        le=1e6,
        description="Sustained requests, and records of its topic, per tenant and second",
    )
    tenant_burst: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Burst of requests, and of records of its topic, per tenant",
    )
    secret_keys: Path | None = Field(
        default=None, description="File of the keys that encrypt tenants' secrets"
    )
    bundles: str = Field(
        default="",
        description="Folder or address (s3://BUCKET/PREFIX?...) of the bundles of jobs; none are "
        "taken if not given",
    )
    tenant_bundles_gib: float = Field(
        default=16, gt=0, le=1e6, description="Maximum size of the bundles of one tenant, in GiB"
    )
    bundles_kept_d: float = Field(
        default=30,
        ge=2,
        le=3650,
        description="Days after its last use by an upload or a job after which a bundle is removed",
    )
    job_logs: str = Field(
        default="",
        description="Folder or address (s3://BUCKET/PREFIX?...) of the output of jobs, which the "
        "projector stores; only recent output is shown if not given",
    )
    node_executors: NodeExecutors = ""
    terminal_executors: NodeExecutors = Field(
        default="",
        description="Addresses at which the gateway reaches the executors of nodes, for terminals; "
        "those of BERTH_NODE_EXECUTORS if not given",
    )
    executor_ca: Path | None = Field(
        default=None,
        description="CA of their certificates, PEM; if not given BERTH_TLS_CA, else that of the "
        "broker, else the system's",
    )
    terminal_idle_s: float = Field(
        default=1800, ge=1, le=604_800, description="Time without a byte that ends a terminal, in s"
    )
    terminal_longest_s: float = Field(
        default=43_200, ge=1, le=604_800, description="Longest time of a terminal, in s"
    )

    @property
    def stream_limits(self) -> StreamLimits:
        """Bounds of open streams."""
        return StreamLimits(self.streams, self.tenant_streams, self.key_streams)

    @property
    def executors(self) -> tuple[str, ...]:
        """Base addresses of the executors of nodes."""
        return addresses_of(self.node_executors)

    @property
    def terminal_addresses(self) -> tuple[str, ...]:
        """Base addresses of the executors of nodes, as the gateway reaches them."""
        return addresses_of(self.terminal_executors or self.node_executors)

    @property
    def scraped(self) -> dict[str, str]:
        """Metrics address, host:port, of each service."""
        return dict(pair.split("=", 1) for pair in self.metrics_of.split(",") if pair)
