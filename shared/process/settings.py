"""The settings of a service: one frozen model, read once from `BERTH_` variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_core.core_schema import ValidationInfo

from shared.contracts.topics import LANES
from shared.process.connection import Connection

PREFIX = "BERTH_"
FILE = "_FILE"


class BadSettings(SystemExit):
    """Invalid environment; ends the process with one line on stderr."""


class Settings(BaseModel):
    """Fields of every service; a service adds its own by inheriting."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kafka: str = Field(
        pattern=r"^[A-Za-z0-9.-]+:[0-9]{1,5}(,[A-Za-z0-9.-]+:[0-9]{1,5})*$",
        description="Bootstrap servers, as host:port",
    )
    kafka_user: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._-]{0,255}$",
        description="User of this service at the broker; empty = a plain embedded broker",
    )
    kafka_password: SecretStr = Field(
        default=SecretStr(""), description="Password of that user; better from a file"
    )
    kafka_ca: Path | None = Field(
        default=None, validate_default=True, description="CA of the broker's certificate, PEM"
    )
    partitions: int = Field(default=LANES, ge=1, le=1024, description="Lanes; fixed at creation")
    data: Path = Field(description="Folder of snapshots and journals, which are only caches")
    archive: str = Field(
        default="",
        pattern=r"^((/|s3://).*)?$",
        description="Folder or address (s3://BUCKET/PREFIX?...) of the archive of ledgers and "
        "their inputs; empty = none",
    )
    otlp: str = Field(
        default="", pattern=r"^(https?://.+)?$", description="OTLP/HTTP base address; empty = off"
    )
    otlp_ca: Path | None = Field(
        default=None, description="CA of that address, PEM; the system's if not given"
    )
    trace_sample: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of the jobs whose spans are sent; errors, dead letters, preemptions and "
        "missed objectives always are",
    )
    metrics_port: int = Field(
        default=0, ge=0, le=65535, description="Port of /metrics and /health; 0 = none"
    )
    metrics_host: str = Field(
        default="127.0.0.1", description="Listen address of /metrics, which needs no key"
    )
    instance: str = Field(default="", description="Static member id; empty = a dynamic member")
    idempotent: bool = Field(
        default=True, description="Idempotent producer; the embedded broker has none"
    )
    lanes: str = Field(
        default="",
        pattern=r"^([0-9]{1,4}(,[0-9]{1,4})*)?$",
        description="Lanes to hold without a consumer group, like 0,1,2,3; empty = by group",
    )
    failpoint: str = Field(
        default="", pattern=r"^[a-z_]*(:[0-9]+)?$", description="Failpoint, for tests"
    )
    window_ms: int = Field(
        default=20, ge=0, le=10_000, description="Window in which inputs are gathered, ms"
    )

    @field_validator("kafka_ca")
    @classmethod
    def _goes_together(cls, ca: Path | None, info: ValidationInfo) -> Path | None:
        user, password = info.data.get("kafka_user", ""), info.data.get("kafka_password")
        secret = password.get_secret_value() if password else ""
        Connection("", user=user, password=secret, ca=ca).tls()
        return ca

    @property
    def connection(self) -> Connection:
        """Address and credentials of the broker."""
        return Connection(
            self.kafka,
            self.idempotent,
            self.kafka_user,
            self.kafka_password.get_secret_value(),
            self.kafka_ca,
        )


S = TypeVar("S", bound=BaseModel)


def read_settings(model: type[S], environ: Mapping[str, str]) -> S:
    """Return the model from the `BERTH_` variables; BadSettings for a wrong or unknown one.

    `BERTH_X_FILE` names a file that holds the value of `BERTH_X`, so that no secret has to be in
    an environment.
    """
    values: dict[str, str] = {}
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        name, value = _field(model, variable, environ[variable])
        if name in values:
            raise BadSettings(f"{variable}: {name} is given twice, as a value and as a file")
        values[name] = value
    try:
        return model(**values)
    except ValidationError as error:
        raise BadSettings(_line(error)) from None


def _field(model: type[BaseModel], variable: str, value: str) -> tuple[str, str]:
    name = variable.removeprefix(PREFIX).lower()
    if name in model.model_fields:
        return name, value
    stem = name.removesuffix(FILE.lower())
    if stem == name or stem not in model.model_fields:
        raise BadSettings(f"{variable}: no such setting in {model.__module__}")
    try:
        return stem, Path(value).read_text(encoding="utf-8").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{variable}: {error}") from None


def _line(error: ValidationError) -> str:
    """Return the name and reason of each wrong value; never the value, it may be a secret."""
    problems = (
        f"{PREFIX}{str(detail['loc'][0]).upper()}: {detail['msg']}" for detail in error.errors()
    )
    return "; ".join(problems)
