"""The settings of the throttle service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.throttle.proxy.open_requests import MIB, OpenRequestLimits
from shared.contracts.topics import PROMPTS_KEPT_H
from shared.oidc.settings import OidcSettings


class ThrottleSettings(OidcSettings):
    """The `BERTH_` variables of this service besides those of every service."""

    upstream_keys: Path | None = Field(
        default=None,
        description="Folder of the API keys of upstreams: a file per secret, named as it is",
    )
    upstream_ca: Path | None = Field(
        default=None, description="CA of upstreams' certificates, PEM; the system's if not given"
    )
    tokenizers: Path | None = Field(
        default=None, description="Folder of tokenizer files, NAME.json, that endpoints name"
    )
    interaction_key: Path | None = Field(
        default=None,
        description="File of the key that signs ids of interactions, the same for all processes of "
        "the service; without it each keeps one of its own in its data folder",
    )
    answers: Path | None = Field(
        default=None,
        description="Folder for answers to requests of `llm.requests` that are above 512 KiB; "
        "without it they are refused",
    )
    prompts_kept_h: float = Field(
        default=PROMPTS_KEPT_H,
        ge=1,
        le=8760,
        description="Hours for which those files are kept; topics of prompts have it too",
    )
    open_requests: int = Field(
        default=8192, ge=1, description="Requests of the proxy that are open at once; 503 above"
    )
    tenant_open_requests: int = Field(
        default=2048, ge=1, description="Of these, those of one tenant; 429 above"
    )
    open_body_mib: int = Field(
        default=1024, ge=1, description="MiB of the bodies of open requests; 503 above"
    )
    tenant_open_body_mib: int = Field(
        default=256, ge=1, description="Of these, those of one tenant; 429 above"
    )

    @property
    def open_request_limits(self) -> OpenRequestLimits:
        return OpenRequestLimits(
            self.open_requests,
            self.tenant_open_requests,
            self.open_body_mib * MIB,
            self.tenant_open_body_mib * MIB,
        )
