"""What the gateway is told at its start."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.contracts.access import Role
from shared.contracts.registry import RANK
from shared.server_settings import ServerSettings


class GatewaySettings(ServerSettings):
    """`BERTH_` variables of this service."""

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
    recorded: bool = Field(
        default=False, description="A recorded simulation is shown: whatever changes it is refused"
    )
    tenant_rate: float = Field(
        default=200,
        gt=0,
        le=1e6,
        description="Of one tenant a second in the long run: requests, and records of its topic",
    )
    tenant_burst: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Of one tenant at once: requests, and records of its topic",
    )
    oidc_issuer: str = Field(
        default="", max_length=512, description="Whose tokens open the API; empty: keys alone do"
    )
    oidc_audience: str = Field(default="", max_length=512, description="Whom tokens must be for")
    oidc_keys: str = Field(
        default="",
        validate_default=True,
        pattern=r"^((https|file)://.+|/.+)?$",
        description="The issuer's JWKS: an https address, or a file",
    )
    oidc_ca: Path | None = Field(
        default=None, description="Whose certificate the issuer has; absent: the system's"
    )
    oidc_leeway_s: float = Field(default=30, ge=0, le=60, description="How far clocks may differ")
    oidc_tenant: str = Field(default="tenant", description="Claim of the tenant, dotted if deeper")
    oidc_role: str = Field(default="role", description="Claim of the role, or of several")
    oidc_roles: str = Field(
        default="viewer=viewer,submitter=submitter,operator=operator,admin=admin",
        pattern=r"^[^=,]+=(viewer|submitter|operator|admin)(,[^=,]+=(viewer|submitter|operator|admin))*$",
        description="What values of that claim mean, as value=role,...",
    )

    @field_validator("oidc_keys")
    @classmethod
    def _goes_with(cls, keys: str, info: ValidationInfo) -> str:
        issuer, audience = (bool(info.data.get(f"oidc_{n}")) for n in ("issuer", "audience"))
        if not issuer == audience == bool(keys):
            raise ValueError("issuer, audience and keys are given together, or none of them")
        return keys

    @property
    def roles_of_claim(self) -> dict[str, Role]:
        said = dict(each.split("=", 1) for each in self.oidc_roles.split(","))
        return {value: role for value, name in said.items() for role in RANK if role == name}

    @property
    def scraped(self) -> dict[str, str]:
        """Service -> host:port of its metrics."""
        return dict(each.split("=", 1) for each in self.metrics_of.split(",") if each)
