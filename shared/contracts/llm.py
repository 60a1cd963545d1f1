"""LLM requests: token counts and ids only, never a prompt or a completion."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Command, Event, Local, Model, Name, command, event


@command
class ServeLlmRequest(Command):
    """Serve one request of a tenant's application on an endpoint."""

    TYPE: ClassVar[str] = "llm.serve.v1"
    OWNER: ClassVar[str] = "throttle"
    request_id: str = Field(
        min_length=1, max_length=64, description="id of the request, chosen by the sender"
    )
    tenant: Name = Field(description="set by the gateway")
    endpoint: Name = Field(description="a group of engine replicas")
    application: Name = Field("default", description="application of the tenant")
    interaction: str = Field("", max_length=64, description="conversation that it belongs to")
    prompt_tokens: int = Field(ge=1, le=10_000_000, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=1, le=10_000_000, description="limit of output tokens")


class TokensMade(Model):
    """Output tokens of one running request since the last report."""

    request_id: str = Field(description="the request")
    tokens: int = Field(ge=0, description="output tokens generated")
    done: bool = Field(False, description="the output is complete")


class EngineAdvanced(Local):
    """Progress of the engine since the last report of the shell."""

    made: tuple[TokensMade, ...] = Field(description="output tokens by request")


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
    prompt_tokens: int = Field(ge=0, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=0, description="limit of output tokens")
    ahead: int = Field(0, ge=0, description="requests ahead of it in the queue")
    wait_s: float = Field(0.0, ge=0, description="estimated wait, wall s")


@event
class LlmRequestStarted(Event):
    """The request entered the engine's batch; its prompt is charged now (VTC)."""

    TYPE: ClassVar[str] = "llm.started.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    waited_ms: int = Field(0, ge=0, description="wall ms in the queue")
    counter: float = Field(0.0, description="the tenant's virtual token counter after the charge")


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
    """The output of the request is complete."""

    TYPE: ClassVar[str] = "llm.finished.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="tenant that sent it")
    prompt_tokens: int = Field(ge=0, description="prompt tokens charged")
    output_tokens: int = Field(ge=0, description="output tokens charged")
    served_ms: int = Field(0, ge=0, description="wall ms in the engine")


@event
class LlmRequestRejected(Event):
    """The request was rejected."""

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
