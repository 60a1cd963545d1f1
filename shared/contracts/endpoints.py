"""LLM endpoints: the models that clients name, the engines behind them, and their limits."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.base import VERSION, Command, Event, Model, Name, command, event

ModelName = Annotated[
    str,
    Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._:/@+-]*[A-Za-z0-9])?$"),
]
"""The name of a model as clients of the OpenAI API send it: slashes and capitals too."""

DisciplineName = Literal[
    "berth", "fcfs", "rpm", "tpm", "lcf", "drr", "vtc", "vtc_predict", "fairserve"
]

MOST_TOKENS = 10_000_000
"""The most tokens of one prompt or answer that any message may name."""


class Upstream(Model):
    """An engine, or a service with the OpenAI API, to which an endpoint sends its requests."""

    name: Name = Field(description="name within the endpoint")
    url: str = Field(
        max_length=512,
        pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$",
        description="base address without /v1, as http://host:port",
    )
    model: ModelName | None = Field(
        None, description="name of the model there; absent: the name that the client sent"
    )
    key: Name | None = Field(
        None, description="name of the secret with its API key; absent: none is sent"
    )
    weight: float = Field(1.0, gt=0, le=1000, description="share of the requests beside others")
    max_requests: int = Field(
        64, ge=1, le=100_000, description="requests that it is sent at once, its batch size"
    )
    drained: bool = Field(False, description="gets no more requests; those that run go on")


class TokenBudget(Model):
    """The limit of each holder: within a window, with a half-life, or once and for all."""

    holder: Literal["tenant", "user", "application", "model"] = Field(
        description="kind of the holders, each of which has the whole limit"
    )
    unit: Literal["requests", "tokens", "money"] = Field(description="unit of the limit")
    limit: float = Field(gt=0, le=1e15, description="units that a holder may use")
    memory: Literal["window", "half_life", "forever"] = Field(
        "forever", description="how use is forgotten: after a window, by half-lives, or never"
    )
    period_s: float = Field(
        60.0, ge=1, le=31_536_000, description="length of the window or the half-life, s"
    )

    @property
    def account(self) -> str:
        """Return what names its use: a budget that is changed keeps it while this is the same."""
        period = "" if self.memory == "forever" else f"{self.period_s:g}"
        return "/".join((self.holder, self.unit, self.memory, period))


class SharedWithRetraining(Model):
    """Deadlines of requests before engines that retrain adapters on the same GPUs."""

    ttft_s: float = Field(2.0, gt=0, le=3600, description="longest time to the first token, s")
    tpot_s: float = Field(0.1, gt=0, le=60, description="longest mean time per later token, s")
    freshness_s: float = Field(
        60.0, gt=0, le=10**7, description="longest age of an adapter, where deadlines permit it, s"
    )


class EndpointSettings(Model):
    """The settings of an endpoint; each has a default but its name."""

    endpoint: ModelName = Field(description="name of the model, as clients send it")
    upstreams: tuple[Upstream, ...] = Field((), max_length=64, description="engines behind it")
    aliases: tuple[ModelName, ...] = Field(
        (), max_length=64, description="other names of the endpoint"
    )
    adapters: tuple[ModelName, ...] = Field(
        (), max_length=1024, description="LoRA adapters of its engines, named as models"
    )
    fallbacks: tuple[ModelName, ...] = Field(
        (), max_length=8, description="endpoints that serve while none of its engines can"
    )
    tenants: tuple[Name, ...] = Field(
        (), max_length=1024, description="tenants that may use it; empty: all"
    )
    discipline: DisciplineName = Field("berth", description="order in which requests are served")
    balance: Literal["least_loaded", "two_choices", "prefix"] = Field(
        "least_loaded", description="choice of the engine for a request"
    )
    batch_tokens: int | None = Field(
        None,
        ge=1,
        le=10**9,
        description="tokens that its running requests may hold together; absent: not limited",
    )
    output_limit: int = Field(
        4096, ge=1, le=MOST_TOKENS, description="output tokens of a request that names no limit"
    )
    queue_limit: int = Field(
        200, ge=1, le=10_000, description="requests of one tenant that may wait"
    )
    queue_timeout_s: float = Field(
        600.0, gt=0, le=86_400, description="longest wait of a request, s"
    )
    away_timeout_s: float = Field(
        30.0,
        ge=0,
        le=86_400,
        description="longest wait of HTTP requests while no engine can serve, s",
    )
    tokenizer: Name | None = Field(
        None, description="name of a tokenizer file of the service; absent: tokens are estimated"
    )
    throttles: bool = Field(False, description="berth throttles by shares under overload")
    tenant_per_minute: int = Field(
        120, ge=1, le=10**6, description="calls of a tenant: rpm; fairserve, berth: under overload"
    )
    application_per_minute: int = Field(
        2000, ge=1, le=10**6, description="calls of an application under overload"
    )
    tenant_tokens_per_minute: int = Field(
        1_000_000, ge=1, le=10**12, description="tokens of a tenant: tpm"
    )
    classes: int = Field(1, ge=1, le=16, description="priority classes of berth")
    slack: float = Field(
        0.0,
        ge=0,
        le=1e9,
        description="units by which deadlines and prefixes may bend the order of berth",
    )
    cached_blocks: int = Field(
        0, ge=0, le=10**6, description="prefix blocks that its engines cache; 0: not regarded"
    )
    budgets: tuple[TokenBudget, ...] = Field((), max_length=16, description="budgets of holders")
    request_price: float = Field(0.0, ge=0, le=1e6, description="money per request")
    prompt_price: float = Field(0.0, ge=0, le=1e9, description="money per million prompt tokens")
    output_price: float = Field(0.0, ge=0, le=1e9, description="money per million output tokens")
    drained: bool = Field(False, description="refuses new requests; those that it has go on")
    retraining: SharedWithRetraining | None = Field(
        None, description="deadlines beside the retraining of adapters; absent: they get no share"
    )


@command
class ConfigureEndpoint(EndpointSettings, Command):
    """Create an LLM endpoint or change its settings."""

    TYPE: ClassVar[str] = "endpoint.configure.v2"
    OWNER: ClassVar[str] = "access"
    if_version: str | None = Field(
        None,
        pattern=VERSION,
        description="version of the settings that this is based on, `absent` for a new endpoint; "
        "refused if the endpoint has another; absent: no condition",
    )


@command
class DeleteEndpoint(Command):
    """Delete an LLM endpoint: requests that wait are refused, its lane is free afterwards."""

    TYPE: ClassVar[str] = "endpoint.delete.v1"
    OWNER: ClassVar[str] = "access"
    endpoint: ModelName = Field(description="the endpoint")


@event
class EndpointConfigured(EndpointSettings, Event):
    """An LLM endpoint was configured."""

    TYPE: ClassVar[str] = "endpoint.configured.v2"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access", "throttle")
    SUBJECT: ClassVar[str] = "endpoint"
    partition: int = Field(ge=0, description="lane of the endpoint")

    @property
    def models(self) -> tuple[str, ...]:
        """Return every name under which clients reach the endpoint."""
        return (self.endpoint, *self.aliases, *self.adapters)


@event
class EndpointDeleted(Event):
    """An LLM endpoint was deleted."""

    TYPE: ClassVar[str] = "endpoint.deleted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access", "throttle")
    SUBJECT: ClassVar[str] = "endpoint"
    endpoint: ModelName = Field(description="the endpoint")
    partition: int = Field(ge=0, description="lane that it had")
