"""LLM requests: token counts and ids only, never a prompt or a completion."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Local, Model, Name, Text, command, event
from shared.contracts.endpoints import MOST_TOKENS, ModelName

Label = Text
"""A user or an interaction, as the client names it."""

ApiRoute = Literal["chat/completions", "completions", "embeddings", "responses"]
"""Routes of the OpenAI API below `/v1/`."""

RequestOutcome = Literal["completed", "cancelled", "failed", "lost"]
"""How a request that was started ended: its answer is complete, its client left, its engine
failed, or the process that relayed it died, so that its whole reservation is charged."""


@command
class ServeLlmRequest(Command):
    """Serve one request of a tenant's application on an endpoint."""

    TYPE: ClassVar[str] = "llm.serve.v1"
    OWNER: ClassVar[str] = "throttle"
    request_id: str = Field(
        min_length=1, max_length=64, description="id of the request, chosen by the sender"
    )
    tenant: Name = Field(description="set by the gateway")
    endpoint: ModelName = Field(description="the endpoint, as clients name its model")
    application: Name = Field("default", description="application of the tenant")
    user: Label = Field("", description="user of the application, for budgets")
    interaction: str = Field("", max_length=64, description="interaction that it belongs to")
    is_issued: bool = Field(
        False, description="the service issued the id of its interaction; set by the service"
    )
    prompt_tokens: int = Field(
        0, ge=0, le=MOST_TOKENS, description="tokens of the prompt, or fewer: the body is counted"
    )
    max_output_tokens: int = Field(
        0, ge=0, le=MOST_TOKENS, description="limit of output tokens; 0: the body's or endpoint's"
    )
    system_tokens: int = Field(
        0, ge=0, le=MOST_TOKENS, description="tokens of the prompt that the application adds"
    )
    model: ModelName | None = Field(
        None, description="adapter or alias that was requested; absent: the endpoint's own name"
    )
    priority: int = Field(0, ge=0, le=15, description="classes that go before it")
    first_token_ms: int | None = Field(
        None, ge=1, le=86_400_000, description="objective of the time to its first token, ms"
    )
    prefix: tuple[str, ...] = Field(
        (), max_length=64, description="hashes of the blocks of its prompt, each up to its end"
    )
    body: dict[str, object] | None = Field(
        None, description="an OpenAI request, whose answer goes to the tenant's topic of answers"
    )
    route: ApiRoute = Field(
        "chat/completions", description="route of the OpenAI API that the body is for"
    )


class StoredAnswer(Model):
    """An answer that is too large for a record, in a file of the service's folder of answers."""

    path: str = Field(description="path within the folder")
    sha256: str = Field(description="digest of the file")
    bytes: int = Field(ge=0, description="size of the file, bytes")


class LlmAnswer(Model):
    """The answer to a request that came by `llm.requests`; of several to one the first counts."""

    TYPE: ClassVar[str] = "llm.answer.v1"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    endpoint: str = Field("", description="the endpoint")
    status: int = Field(ge=100, le=599, description="status that an HTTP client would get")
    reason: str = Field("", description="why there is no answer, snake_case; empty if there is one")
    interaction: str = Field("", description="interaction of the request; later calls name it")
    body: object = Field(None, description="what an OpenAI client would get: an answer or an error")
    reference: StoredAnswer | None = Field(None, description="in place of a body that is too large")


class TokensMade(Model):
    """Output tokens of one running request since the last report."""

    request_id: str = Field(description="the request")
    tokens: int = Field(ge=0, description="output tokens generated")
    done: bool = Field(False, description="the output is complete")


class EngineAdvanced(Local):
    """Output of running requests since the last report of the shell."""

    made: tuple[TokensMade, ...] = Field(description="output tokens by request")


class RequestEnd(Model):
    """The end of one running request, with the engine's own counts where it gave any."""

    request_id: str = Field(description="the request")
    outcome: RequestOutcome = Field(description="how it ended")
    output_tokens: int = Field(ge=0, description="output tokens in all")
    prompt_tokens: int | None = Field(
        None, ge=0, description="prompt tokens by the engine; absent: as reserved"
    )
    cached_tokens: int = Field(0, ge=0, description="prompt tokens that the engine had cached")
    upstream: str = Field("", description="engine that served it")
    reason: str = Field("", description="why it failed, snake_case")


class RequestsEnded(Local):
    """Ends of running requests, in the order in which they ended."""

    ends: tuple[RequestEnd, ...] = Field(description="each request once")


class RequestsLeft(Local):
    """Waiting requests that must not be served."""

    request_ids: tuple[str, ...] = Field(description="the requests")
    reason: str = Field("cancelled", description="cancelled, or lost with their process")


class EngineStanding(Model):
    """The load and health of an engine of an endpoint; what it does not report is absent."""

    name: str = Field(description="name of the upstream")
    available: bool = Field(description="it gets requests")
    reason: str = Field("", description="why it gets none")
    in_flight: int = Field(0, ge=0, description="requests that it was sent and that have not ended")
    waiting: int | None = Field(None, ge=0, description="requests in its own queue")
    kv_ratio: float | None = Field(None, ge=0, description="part of its KV cache in use")


class CapacityObserved(Local):
    """The requests that the endpoint's engines can take now, all together."""

    requests: int = Field(ge=0, description="requests that may run at once")
    overloaded: bool = Field(False, description="an engine reports a queue or a full cache")
    away: str = Field("", description="why no engine can serve; empty if one can, or only pauses")
    engines: tuple[EngineStanding, ...] = Field((), description="each engine; empty: not noted")
    retraining_share: float | None = Field(
        None, ge=0, le=1, description="part of free time for retraining; absent: not shared"
    )


@event
class LlmRequestQueued(Event):
    """The request waits in the queue, with an estimate of its wait."""

    TYPE: ClassVar[str] = "llm.queued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    endpoint: str = Field(description="the endpoint")
    application: str = Field("default", description="application of the tenant")
    user: str = Field("", description="user of the application")
    interaction: str = Field("", description="interaction that it belongs to")
    is_issued: bool = Field(False, description="the service issued the id of its interaction")
    stage: int = Field(0, ge=0, description="calls of its interaction before it")
    prompt_tokens: int = Field(ge=0, description="tokens of the prompt, as reserved")
    max_output_tokens: int = Field(ge=0, description="limit of output tokens")
    system_tokens: int = Field(0, ge=0, description="tokens that the application adds")
    model: str = Field("", description="adapter or alias that was requested; empty: none")
    priority: int = Field(0, ge=0, description="classes that go before it")
    first_token_by: int | None = Field(None, description="when its first token is due, ms")
    prefix: tuple[str, ...] = Field((), description="hashes of the blocks of its prompt")
    ahead: int = Field(0, ge=0, description="requests ahead of it in the queue")
    wait_s: float | None = Field(None, ge=0, description="estimated wait, wall s; absent: unknown")
    place: str = Field(
        "", description="`partition/offset` of its record in `llm.requests`; empty: came by HTTP"
    )


@event
class LlmRequestStarted(Event):
    """The request may be sent to an engine; its prompt is charged now."""

    TYPE: ClassVar[str] = "llm.started.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    waited_ms: int = Field(0, ge=0, description="wall ms in the queue")
    counter: float = Field(
        0.0, description="written by older versions: counter of its tenant after the charge"
    )


@event
class TokensCharged(Event):
    """Output tokens were charged, once per report of the engine."""

    TYPE: ClassVar[str] = "llm.charged.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "endpoint"
    PUBLIC: ClassVar[bool] = False
    endpoint: str = Field(description="the endpoint")
    made: tuple[TokensMade, ...] = Field(description="output tokens by request")


@event
class LlmRequestFinished(Event):
    """A request that was started has ended, and is charged with what it used."""

    TYPE: ClassVar[str] = "llm.finished.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    prompt_tokens: int = Field(ge=0, description="prompt tokens charged")
    output_tokens: int = Field(ge=0, description="output tokens charged")
    served_ms: int = Field(0, ge=0, description="wall ms in the engine")
    outcome: RequestOutcome = Field("completed", description="how it ended")
    cached_tokens: int = Field(0, ge=0, description="prompt tokens that the engine had cached")
    upstream: str = Field("", description="engine that served it")
    reason: str = Field("", description="why it failed, snake_case")
    cost: float = Field(0.0, ge=0, description="money, by the prices of the endpoint")


@event
class LlmRequestRejected(Event):
    """The request was rejected, or left the queue before it was started."""

    TYPE: ClassVar[str] = "llm.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and violated rule")
    retry_after_s: float | None = Field(
        None, ge=0, description="wall s until a retry may succeed; absent: never"
    )
    endpoint: str = Field("", description="the endpoint; empty: written by an older version")
    application: str = Field("", description="application of the tenant")
    user: str = Field("", description="user of the application")
    model: str = Field("", description="adapter or alias that was requested; empty: none")


@event
class EndpointCapacityNoted(Event):
    """The throttle noted how much the endpoint's engines can take together."""

    TYPE: ClassVar[str] = "llm.capacity-noted.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "endpoint"
    PUBLIC: ClassVar[bool] = False
    endpoint: str = Field(description="the endpoint")
    requests: int = Field(ge=0, description="requests that may run at once")
    overloaded: bool = Field(False, description="an engine reports a queue or a full cache")
    away: str = Field("", description="why no engine can serve; empty if one can, or only pauses")
    engines: tuple[EngineStanding, ...] = Field((), description="each engine; empty: not noted")
    retraining_share: float | None = Field(
        None, ge=0, le=1, description="part of free time for retraining; absent: not shared"
    )


@event
class CountersRebased(Event):
    """All counters of the endpoint's tenants were lowered by the same, so that they stay exact."""

    TYPE: ClassVar[str] = "llm.counters-rebased.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "endpoint"
    PUBLIC: ClassVar[bool] = False
    endpoint: str = Field(description="the endpoint")


@event
class EndpointClockStepped(Event):
    """The clock of the service's host stepped; the endpoint counts later times without it."""

    TYPE: ClassVar[str] = "llm.clock-stepped.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "endpoint"
    PUBLIC: ClassVar[bool] = False
    endpoint: str = Field(description="the endpoint")
    by_ms: int = Field(description="step, wall ms; negative: back")
