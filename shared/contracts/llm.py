"""LLM requests: counts and ids only, never a prompt or an answer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from shared.contracts.base import Command, Event, Local, Model, Name, command, event


@command
class ServeLlmRequest(Command):
    """Serve one request of a tenant's application on an endpoint."""

    TYPE: ClassVar[str] = "llm.serve.v1"
    OWNER: ClassVar[str] = "throttle"
    request_id: str = Field(min_length=1, max_length=64, description="the sender's own id")
    tenant: Name = Field(description="stamped by the gateway")
    endpoint: Name = Field(description="a group of engine replicas")
    application: Name = Field("default", description="which of the tenant's applications")
    interaction: str = Field("", max_length=64, description="the conversation it belongs to")
    prompt_tokens: int = Field(ge=1, le=10_000_000, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=1, le=10_000_000, description="most tokens of the answer")


class TokensMade(Model):
    """Tokens that one running request got since the last report."""

    request_id: str = Field(description="the request")
    tokens: int = Field(ge=0, description="output tokens made")
    done: bool = Field(False, description="the answer is complete")


class EngineAdvanced(Local):
    """The engine's progress, offered by the shell."""

    made: tuple[TokensMade, ...] = Field(description="by request")


@event
class LlmRequestQueued(Event):
    """The request waits for its turn; the estimate is honest, not a constant."""

    TYPE: ClassVar[str] = "llm.queued.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="whose")
    endpoint: str = Field(description="where")
    application: str = Field("default", description="which application")
    prompt_tokens: int = Field(ge=0, description="tokens of the prompt")
    max_output_tokens: int = Field(ge=0, description="most tokens of the answer")
    ahead: int = Field(0, ge=0, description="requests that will be served before it")
    wait_s: float = Field(0.0, ge=0, description="estimated wait")


@event
class LlmRequestStarted(Event):
    """The request is in the engine's batch; its prompt is charged now (VTC)."""

    TYPE: ClassVar[str] = "llm.started.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="whose")
    waited_ms: int = Field(0, ge=0, description="in the queue")
    counter: float = Field(0.0, description="the tenant's virtual token counter after the charge")


@event
class TokensCharged(Event):
    """Output tokens charged as they were made, one note per report of the engine."""

    TYPE: ClassVar[str] = "llm.charged.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "endpoint"
    PUBLIC: ClassVar[bool] = False
    endpoint: str = Field(description="where")
    made: tuple[TokensMade, ...] = Field(description="by request")


@event
class LlmRequestFinished(Event):
    """The answer is complete."""

    TYPE: ClassVar[str] = "llm.finished.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="whose")
    prompt_tokens: int = Field(ge=0, description="charged")
    output_tokens: int = Field(ge=0, description="charged")
    served_ms: int = Field(0, ge=0, description="in the engine")


@event
class LlmRequestRejected(Event):
    """The request will not be served."""

    TYPE: ClassVar[str] = "llm.rejected.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    SUBJECT: ClassVar[str] = "request_id"
    request_id: str = Field(description="the request")
    tenant: str = Field(description="whose")
    reason: str = Field(description="machine-readable: snake_case")
    detail: str = Field("", description="field, value and rule")
    retry_after_s: float | None = Field(None, ge=0, description="when to try again; absent: never")
