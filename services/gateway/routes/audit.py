"""Answers to commands, and the audit."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Path, Query, Request, Response

from berth_client import answers
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.reads.paging import Limit, NamePart, PageToken, TimeCursor, page_of
from services.gateway.requests.archived_rows import gone, with_left_before
from services.gateway.requests.authorization import authorize
from services.gateway.requests.commands import json_response
from services.gateway.requests.filters import check_action
from services.gateway.responses.openapi import read_route
from services.gateway.wiring import Gateway, gateway_of
from shared.bus.inputs.inbox import ACCESS

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/commands/{command_id}", **read_route(answers.CommandAnswer, 404, 422))
async def show_answer(
    request: Request, command_id: Annotated[str, Path(pattern=r"^[A-Za-z0-9._:/-]{1,64}$")]
) -> Response:
    """Show the answer to a command; 404 until its owner has decided and this gateway applies the
    decision: a client that reads that a tenant was retired finds it so at this gateway."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "viewer")
    row = await gateway.database.row(bearer, queries.COMMAND, bearer.tenant, command_id)
    if row is None or not _is_applied(gateway, row):
        raise await gone(gateway, bearer, "answer", "command")
    return json_response(row)


@router.get("/audit", **read_route(answers.Page[answers.AuditEntry], 422))
async def list_audit(
    request: Request,
    principal: Annotated[NamePart, Query(description="only entries of this principal")] = None,
    action: Annotated[
        NamePart, Query(description="only this action, such as key.create.v1")
    ] = None,
    outcome: Annotated[
        Literal["accepted", "refused", "requested"] | None, Query(description="only this outcome")
    ] = None,
    after: PageToken = None,
    limit: Limit = 100,
) -> Response:
    """List actions and denied requests by principal, newest first; for operators."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "operator")
    check_action(action)
    cursor = TimeCursor.read(after)
    rows = await gateway.database.rows(
        bearer, queries.AUDIT, principal, action, outcome, cursor.at, cursor.key, limit
    )
    page = page_of(rows, limit, "at", "entry_id")
    return json_response(await with_left_before(gateway, bearer, page, "audit"))


def _is_applied(gateway: Gateway, answer: Row) -> bool:
    return answer["ledger"] != ACCESS.topic or gateway.access.has_folded_answer(
        str(answer["command_id"]), cast("int", answer["at"])
    )
