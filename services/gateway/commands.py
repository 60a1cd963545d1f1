"""A request becomes a command, and the answer says under which id to ask what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import msgspec
from fastapi import Request, Response
from pydantic import Field

from services.gateway.outbox import OutgoingCommand
from services.gateway.problem import ApiError
from services.gateway.wiring import Gateway
from shared.contracts.base import Command, Model
from shared.contracts.registry import Bearer
from shared.telemetry.names import AttributeKey, SpanName

COMMANDS = "commands"
ACCESS_COMMANDS = "access.commands"
LLM_REQUESTS = "llm.requests"


class CommandReceipt(Model):
    """The command is acknowledged by the broker; its owner will answer it."""

    command_id: str = Field(description="ask /v1/commands/{command_id} for the answer")
    trace_id: str = Field(description="of the trace that begins here")


class SubmissionReceipt(CommandReceipt):
    """The submission is acknowledged by the broker; admission will answer it."""

    job_id: str = Field(description="the job, or the stem of an array's jobs")
    job_ids: list[str] = Field(description="every job, in the order of the array")
    idempotency_key: str = Field(description="as sent, or made up")
    pool: str = Field(description="where it goes")


class KeyReceipt(CommandReceipt):
    """A new API key. It is shown this once: only its hash is kept."""

    key_id: str = Field(description="its public part")
    key: str = Field(description="`key_id.secret`, for the Authorization header")


def new_command_id() -> str:
    return str(uuid4())


async def append_command(
    request: Request,
    gateway: Gateway,
    span_name: SpanName,
    topic: str,
    lane: int,
    letter: OutgoingCommand,
    attributes: Mapping[AttributeKey, str],
) -> CommandReceipt:
    """Appends the command within a span that begins, or goes on with, the sender's trace."""
    parent = request.headers.get("traceparent", "")
    with gateway.telemetry.spans.span(span_name, parent, attributes) as span:
        await gateway.outbox.put(topic, lane, letter.within(span.traceparent))
    gateway.telemetry.metrics.inputs.labels("http").inc()
    return CommandReceipt(command_id=letter.id, trace_id=span.traceparent.split("-")[1])


async def send_command(
    request: Request,
    gateway: Gateway,
    bearer: Bearer,
    command: Command,
    *,
    topic: str = COMMANDS,
    lane: int = 0,
    subject: str,
    span: SpanName,
    pool: str = "",
) -> CommandReceipt:
    letter = OutgoingCommand(
        new_command_id(),
        command,
        subject,
        bearer.tenant or "",
        pool,
        principal=bearer.principal,
        access_next=gateway.access.next,
    )
    attributes: dict[AttributeKey, str] = {"messaging.destination.name": topic}
    return await append_command(request, gateway, span, topic, lane, letter, attributes)


def accepted_response(message: Model) -> Response:
    return Response(message.model_dump_json(), 202, media_type="application/json")


def json_response(found: object) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")


def lane_of_pool(gateway: Gateway, pool: str) -> int:
    lane = gateway.access.pools().get(pool)
    if lane is None:
        raise ApiError(422, "unknown_pool", f"no such pool: {pool}")
    return lane
