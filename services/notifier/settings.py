"""Settings of the notifier."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from services.notifier.core.addresses import Network, parse_networks
from shared.process.settings import Settings

MailTls = Literal["starttls", "implicit", "none"]


class NotifierSettings(Settings):
    """`BERTH_` variables of this service."""

    postgres: str = Field(
        description="Address of the database; from a file if it contains a secret"
    )
    secret_keys: Path | None = Field(
        default=None, description="File of the keys that encrypt tenants' secrets"
    )
    public_url: str = Field(
        default="",
        pattern=r"^(https?://[^\s]+)?$",
        description="Address of the REST API for people, which links to jobs begin with",
    )
    webhook_networks: str = Field(
        default="",
        description="Private networks that webhooks may be sent to, as 10.0.0.0/8,fd00::/8; "
        "addresses in them may use plain HTTP",
    )
    smtp_host: str = Field(
        default="", pattern=r"^[A-Za-z0-9.:-]*$", description="SMTP server; empty = no mails"
    )
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Its port")
    smtp_tls: MailTls = Field(
        default="starttls",
        description="TLS of the connection: starttls, implicit (port 465), or none",
    )
    smtp_ca: Path | None = Field(
        default=None, description="CA of its certificate, PEM; the system's if not given"
    )
    smtp_user: str = Field(default="", description="User at the server; empty = no login")
    smtp_password: SecretStr = Field(
        default=SecretStr(""), description="Password of that user; from a file"
    )
    mail_from: str = Field(
        default="",
        pattern=r"^([\x21-\x3f\x41-\x7e]+@[A-Za-z0-9.-]+)?$",
        description="Address that mails come from",
    )
    mail_domains: str = Field(
        default="",
        pattern=r"^[a-z0-9.,-]*$",
        description="Domains of the addresses that get mails, separated by commas; empty = any",
    )

    @field_validator("webhook_networks")
    @classmethod
    def _are_networks(cls, text: str) -> str:
        parse_networks(text)
        return text

    @model_validator(mode="after")
    def _has_a_sender(self) -> Self:
        if self.smtp_host and not self.mail_from:
            raise ValueError("mail_from: empty; must be an address where smtp_host is set")
        return self

    @property
    def networks(self) -> tuple[Network, ...]:
        return parse_networks(self.webhook_networks)

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(filter(None, self.mail_domains.split(",")))
