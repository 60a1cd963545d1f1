"""The settings of a service that accepts tokens of an OIDC provider."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.contracts.access import Role
from shared.contracts.registry import RANK
from shared.http.server_settings import ServerSettings
from shared.oidc.claims import ClaimRules
from shared.oidc.tokens import TokenRules


class OidcSettings(ServerSettings):
    """`BERTH_OIDC_*`; without an issuer only API keys are accepted."""

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
    def token_rules(self) -> TokenRules | None:
        """The rules of tokens; None where only API keys are accepted."""
        if not self.oidc_issuer:
            return None
        claims = ClaimRules(self.oidc_tenant, self.oidc_role, self.roles_of_claim)
        return TokenRules(self.oidc_issuer, self.oidc_audience, self.oidc_leeway_s, claims)
