"""A request becomes a command, and the answer says under which id to ask what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import msgspec
from fastapi import Request, Response
from pydantic import Field

from services.gateway.outbox import Letter
from services.gateway.parts import Gateway
from services.gateway.problem import Refusal
from shared.contracts.base import Command, Model
from shared.contracts.registry import Bearer
from shared.telemetry.names import AttributeKey, SpanName

COMMANDS = "commands"
ACCESS_COMMANDS = "access.commands"
LLM_REQUESTS = "llm.requests"


class Ticket(Model):
    """The command is acknowledged by the broker; its owner will answer it."""

    command_id: str = Field(description="ask /v1/commands/{command_id} for the answer")
    trace_id: str = Field(description="of the trace that begins here")


class Submitted(Ticket):
    """The submission is acknowledged by the broker; admission will answer it."""

    job_id: str = Field(description="the job, or the stem of an array's jobs")
    job_ids: list[str] = Field(description="every job, in the order of the array")
    idempotency_key: str = Field(description="as sent, or made up")
    pool: str = Field(description="where it goes")


class KeyMade(Ticket):
    """A new API key. It is shown this once: only its hash is kept."""

    key_id: str = Field(description="its public part")
    key: str = Field(description="`key_id.secret`, for the Authorization header")


def new_command_id() -> str:
    return str(uuid4())


async def send(
    request: Request,
    parts: Gateway,
    span_name: SpanName,
    topic: str,
    lane: int,
    letter: Letter,
    attributes: Mapping[AttributeKey, str],
) -> Ticket:
    """Appends the command within a span that begins, or goes on with, the sender's trace."""
    parent = request.headers.get("traceparent", "")
    with parts.telemetry.spans.span(span_name, parent, attributes) as span:
        await parts.outbox.put(topic, lane, letter.within(span.traceparent))
    parts.telemetry.metrics.inputs.labels("http").inc()
    return Ticket(command_id=letter.id, trace_id=span.traceparent.split("-")[1])


async def order(
    request: Request,
    parts: Gateway,
    bearer: Bearer,
    command: Command,
    *,
    topic: str = COMMANDS,
    lane: int = 0,
    subject: str,
    span: SpanName,
    pool: str = "",
) -> Ticket:
    letter = Letter(
        new_command_id(),
        command,
        subject,
        bearer.tenant or "",
        pool,
        principal=bearer.principal,
        access_next=parts.access.next,
    )
    attributes: dict[AttributeKey, str] = {"messaging.destination.name": topic}
    return await send(request, parts, span, topic, lane, letter, attributes)


def accepted(message: Model) -> Response:
    return Response(message.model_dump_json(), 202, media_type="application/json")


def shown(found: object) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")


def lane_of_pool(parts: Gateway, pool: str) -> int:
    lane = parts.access.pools().get(pool)
    if lane is None:
        raise Refusal(422, "unknown_pool", f"no such pool: {pool}")
    return lane
