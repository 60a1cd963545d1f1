"""Inputs that could not be decoded, or were quarantined."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from berth_client import answers
from services.gateway.core.strict import Body, parse_body
from services.gateway.reads import queries
from services.gateway.reads.paging import Limit, TimeCursor, TimeToken, page_of
from services.gateway.requests.archived_rows import gone, with_left_before
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    accepted_response,
    command_route,
    json_response,
    send_access_command,
)
from services.gateway.responses.openapi import read_route
from services.gateway.wiring import gateway_of
from shared.contracts.access import RetryInput, SkipInput
from shared.contracts.base import Model, Text
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1", tags=["access"])


class SkipInputRequest(Model):
    """The reason for which an input is never decided."""

    reason: Text = Field(min_length=1, description="free text for the audit")


InputIdPath = Annotated[str, Path(description="id of the input: ledger/partition/seq/index")]


@router.get("/dead", **read_route(answers.Page[answers.DeadLetter], 422))
async def list_dead_letters(
    request: Request,
    settled: Annotated[
        bool, Query(description="include quarantined inputs that were retried or skipped")
    ] = False,
    after: TimeToken = None,
    limit: Limit = 100,
) -> Response:
    """List records that could not be decoded and quarantined inputs, newest first, with state.

    `state` is `rejected` for the first, whose bytes the topic `dead` has. A quarantined input is
    `open` until an operator decides, and `retrying` until its lane has. Then it is settled:
    `skipped`, `retried`, `raised_again` (another one is open) or `not_retained` (the bytes).
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.DEAD, bearer.tenant, settled, cursor.at, cursor.key, limit
    )
    page = page_of(rows, limit, "at", "dead_id")
    return json_response(await with_left_before(gateway, bearer, page, "dead_letter"))


@router.get("/dead/{dead_id:path}", **read_route(answers.DeadLetter, 404, 422))
async def show_dead_letter(
    request: Request,
    dead_id: Annotated[
        str, Path(pattern=r"^[A-Za-z0-9._:/-]{1,160}$", description="`dead_id` of the list")
    ],
) -> Response:
    """Show an input that could not be decoded, or was quarantined."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.DEAD_LETTER, bearer.tenant, dead_id)
    if row is None:
        raise await gone(gateway, bearer, "dead letter", "dead_letter")
    return json_response(row)


@router.post("/dead/{input_id:path}/retry", **command_route(None, 422))
async def retry_input(request: Request, input_id: InputIdPath) -> Response:
    """Give a quarantined input to its service again, once."""
    bearer = await authorize(request, "operator")
    return await _settle(request, bearer, parse_body(RetryInput, {"input_id": input_id}))


@router.post("/dead/{input_id:path}/skip", **command_route(SkipInputRequest))
async def skip_input(request: Request, input_id: InputIdPath) -> Response:
    """Close a quarantined input: it is never decided."""
    bearer = await authorize(request, "operator")
    body = parse_body(SkipInputRequest, await json_body(request))
    fields: Body = {"input_id": input_id, "reason": body.reason}
    return await _settle(request, bearer, parse_body(SkipInput, fields))


async def _settle(request: Request, bearer: Bearer, command: RetryInput | SkipInput) -> Response:
    receipt = await send_access_command(request, bearer, command, command.input_id)
    return accepted_response(receipt)
