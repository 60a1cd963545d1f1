"""Settings of the gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.contracts.access import Role
from shared.contracts.registry import RANK
from shared.server_settings import NodeExecutors, ServerSettings, addresses_of


class GatewaySettings(ServerSettings):
    """`BERTH_` variables of this service."""

    postgres: str = Field(
        default="", description="Address of the read models; reads answer 503 if not given"
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
        default=64, ge=1, le=10_000, description="Maximum number of open event and log streams"
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
    node_executors: NodeExecutors = ""
    oidc_issuer: str = Field(
        default="", max_length=512, description="Issuer of OIDC tokens; API keys only if not given"
    )
    oidc_audience: str = Field(
        default="", max_length=512, description="Required audience of tokens"
    )
    oidc_keys: str = Field(
        default="",
        validate_default=True,
        pattern=r"^((https|file)://.+|/.+)?$",
        description="JWKS of the issuer: an https address, or a file",
    )
    oidc_ca: Path | None = Field(
        default=None, description="CA of the issuer's certificate; the system's if not given"
    )
    oidc_leeway_s: float = Field(
        default=30, ge=0, le=60, description="Accepted difference of clocks, in seconds"
    )
    oidc_tenant: str = Field(
        default="tenant", description="Claim with the tenant; dots separate levels"
    )
    oidc_role: str = Field(default="role", description="Claim with the role, or a list of roles")
    oidc_roles: str = Field(
        default="viewer=viewer,submitter=submitter,operator=operator,admin=admin",
        pattern=r"^[^=,]+=(viewer|submitter|operator|admin)(,[^=,]+=(viewer|submitter|operator|admin))*$",
        description="Roles by value of that claim, as value=role,...",
    )

    @field_validator("oidc_keys")
    @classmethod
    def _check_complete(cls, keys: str, info: ValidationInfo) -> str:
        issuer, audience = (bool(info.data.get(f"oidc_{n}")) for n in ("issuer", "audience"))
        if not issuer == audience == bool(keys):
            raise ValueError("oidc_issuer, oidc_audience and oidc_keys are required together")
        return keys

    @property
    def roles_of_claim(self) -> dict[str, Role]:
        names = dict(pair.split("=", 1) for pair in self.oidc_roles.split(","))
        return {value: role for value, name in names.items() for role in RANK if role == name}

    @property
    def executors(self) -> tuple[str, ...]:
        """Base addresses of the executors of nodes."""
        return addresses_of(self.node_executors)

    @property
    def scraped(self) -> dict[str, str]:
        """Metrics address, host:port, of each service."""
        return dict(pair.split("=", 1) for pair in self.metrics_of.split(",") if pair)
