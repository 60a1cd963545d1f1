"""Turns requests into commands; the response names the id under which the decision is found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from fastapi import Request, Response

from berth_client.answers import CommandReceipt
from services.gateway.kafka.outbox import OutgoingCommand
from services.gateway.requests.filters import one_of
from services.gateway.responses.openapi import problem_responses, request_body
from services.gateway.responses.problem import ApiError, unavailable
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.access import RegisterTenant
from shared.contracts.base import Command, Model
from shared.contracts.command_answers import CommandRefused
from shared.contracts.endpoints import ConfigureEndpoint
from shared.contracts.pools import ConfigurePool
from shared.contracts.registry import Bearer
from shared.contracts.updates import UpdateEndpoint, UpdatePool, UpdateTenant
from shared.telemetry.names import AttributeKey, SpanName

COMMANDS = "commands"
ACCESS_COMMANDS = "access.commands"
LLM_REQUESTS = "llm.requests"
ANSWER_S = 5.0
"""Longest wait for the decision of access."""
Configuration = (
    ConfigurePool | ConfigureEndpoint | RegisterTenant | UpdatePool | UpdateEndpoint | UpdateTenant
)
CONFLICTS = frozenset(
    {
        "node_exists",
        "machine_changed",
        "machine_unknown",
        "pool_in_use",
        "identity_valid",
        "token_exists",
        "too_many_tokens",
        "version_conflict",
        "user_exists",
        "webhook_exists",
        "upgrade_not_finished",
    }
)
NOT_FOUND = frozenset({"unknown_user"})
NOT_PERMITTED = frozenset(
    {
        "terminals_not_permitted",
        "unknown_token",
        "token_expired",
        "token_used_up",
        "credential_revoked",
        "unknown_credential",
    }
)


def command_route(
    body: type[Model] | None, *problems: int, required: bool = True, receipt: Any = CommandReceipt
) -> dict[str, Any]:
    """Return the arguments of a route that answers 202 with the receipt of a command.

    `problems` are its statuses beside those of every route and, with a body, of every body.
    """
    route = {"status_code": 202, "response_model": receipt}
    if body is None:
        return {**route, "responses": problem_responses(*problems)}
    responses = problem_responses(400, 413, 415, 422, *problems)
    described = request_body(body, required=required)
    return {**route, "responses": responses, "openapi_extra": described}


def new_command_id() -> str:
    return str(uuid4())


async def append_command(
    request: Request,
    gateway: Gateway,
    span_name: SpanName,
    topic: str,
    lane: int,
    command: OutgoingCommand,
    attributes: Mapping[AttributeKey, str],
) -> CommandReceipt:
    """Append the command within a span that starts, or continues, the sender's trace."""
    parent = request.headers.get("traceparent", "")
    with gateway.telemetry.spans.span(span_name, parent, attributes) as span:
        await gateway.outbox.put(topic, lane, command.within(span.traceparent))
    gateway.telemetry.metrics.inputs.labels("http").inc()
    return CommandReceipt(command_id=command.id, trace_id=span.traceparent.split("-")[1])


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
    """Append the command on behalf of the bearer."""
    outgoing = OutgoingCommand(
        new_command_id(),
        command,
        subject,
        bearer.tenant or "",
        pool,
        principal=bearer.principal,
        access_next=gateway.access.next,
    )
    attributes: dict[AttributeKey, str] = {"messaging.destination.name": topic}
    return await append_command(request, gateway, span, topic, lane, outgoing, attributes)


async def send_access_command(
    request: Request, bearer: Bearer, command: Command, subject: str
) -> CommandReceipt:
    """Append a command to access on behalf of the bearer; access decides later."""
    return await send_command(
        request,
        gateway_of(request),
        bearer,
        command,
        topic=ACCESS_COMMANDS,
        subject=subject,
        span="access",
    )


async def send_configuration(
    request: Request, bearer: Bearer, command: Configuration, subject: str
) -> CommandReceipt:
    """Send the settings of a pool, endpoint or tenant to access.

    A change that names its version is awaited: see `decide_by_access`.
    """
    if command.if_version is None:
        return await send_access_command(request, bearer, command, subject)
    return await decide_by_access(request, bearer.principal, command, subject)


async def decide_by_access(
    request: Request,
    principal: str,
    command: Command,
    subject: str,
    *,
    tenant: str = "",
    pool: str = "",
) -> CommandReceipt:
    """Append a command to access and return once it has accepted it.

    Raises ApiError 403, 404, 409 or 422 with its reason, and 503 without an answer in time.
    """
    gateway = gateway_of(request)
    outgoing = OutgoingCommand(
        new_command_id(),
        command,
        subject,
        tenant,
        pool,
        principal=principal,
        access_next=gateway.access.next,
    )
    attributes: dict[AttributeKey, str] = {"messaging.destination.name": ACCESS_COMMANDS}
    with gateway.access.awaited(outgoing.id) as awaited:
        receipt = await append_command(
            request, gateway, "access", ACCESS_COMMANDS, 0, outgoing, attributes
        )
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await awaited
        except TimeoutError:
            raise unavailable("no_answer", "access has not answered yet; repeat") from None
    if isinstance(answer, CommandRefused):
        raise ApiError(_status_of(answer.reason), answer.reason, answer.detail)
    return receipt


def _status_of(reason: str) -> int:
    if reason in CONFLICTS:
        return 409
    if reason in NOT_FOUND:
        return 404
    return 403 if reason in NOT_PERMITTED else 422


def accepted_response(receipt: CommandReceipt) -> Response:
    return Response(msgspec.json.encode(receipt), 202, media_type="application/json")


def json_response(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def lane_of_pool(gateway: Gateway, pool: str) -> int:
    """Return the lane of the pool; raises ApiError 422 for an unknown pool."""
    pools = gateway.access.pools()
    if pool not in pools:
        raise ApiError(422, "unknown_pool", f"no such pool: {pool}; {one_of(pools)}")
    return pools[pool]
