"""A node joins by a token and renews its credential; both answers come from access."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from time import monotonic_ns
from typing import TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from services.gateway.core.strict import parse_body
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import decide_by_access
from services.gateway.responses.openapi import WITHOUT_KEY, problem_responses, request_body
from services.gateway.responses.problem import ApiError, unauthenticated, unavailable
from services.gateway.wiring import Gateway, gateway_of
from shared.bus.clock import now_ms
from shared.contracts.agents import AGENT_API, MAX_CA_CHARS, Joined, JoinRequest, RenewRequest
from shared.contracts.enrolment import EnrollNode, NodeTokenCreated, RenewNodeCredential
from shared.contracts.keys import hash_secret, parse_bearer, parse_key
from shared.contracts.node_registry import EnrolledNode, Refusal

router = APIRouter(prefix=AGENT_API, tags=["nodes"])
log = logging.getLogger(__name__)

REFUSALS = problem_responses(400, 409, 413, 415, 422)
M = TypeVar("M", bound=BaseModel)


@router.post(
    "/join",
    response_model=Joined,
    responses=REFUSALS,
    openapi_extra=request_body(JoinRequest) | WITHOUT_KEY,
)
async def join_node(request: Request) -> Response:
    """Give a node an identity. The join token is the right to it; the node keeps its secret."""
    gateway, address = _open_gateway(request)
    body = await _parsed(request, JoinRequest)
    token = await _verified_token(gateway, body.token)
    if token is None:
        gateway.joins.note_failure(address, monotonic_ns())
        raise unauthenticated("token: unknown; create one with `berth nodes token`")
    request.state.principal = principal = f"token:{token.token_id}"
    gateway.joins.take(token.token_id, monotonic_ns())
    command = EnrollNode(
        node_id=body.node_id,
        token_id=token.token_id,
        credential_sha256=body.credential_sha256,
        hardware=body.hardware,
    )
    await decide_by_access(request, principal, command, body.node_id)
    return await _joined(gateway, body.node_id)


@router.post(
    "/renew", response_model=Joined, responses=REFUSALS, openapi_extra=request_body(RenewRequest)
)
async def renew_credential(request: Request) -> Response:
    """Replace the credential of a node, which authenticates with the present one."""
    gateway, address = _open_gateway(request)
    credential = parse_bearer(request.headers.get("authorization"))
    node = await _authenticated(gateway, credential)
    if isinstance(node, Refusal):
        gateway.joins.note_failure(address, monotonic_ns())
        raise ApiError(node.status, node.reason, node.detail)
    request.state.principal = principal = f"node:{node.node_id}"
    gateway.joins.take(principal, monotonic_ns())
    body = await _parsed(request, RenewRequest)
    parsed = parse_key(credential)
    assert parsed is not None
    command = RenewNodeCredential(
        node_id=node.node_id,
        presented_sha256=hash_secret(parsed.secret),
        credential_sha256=body.credential_sha256,
        hardware=body.hardware,
        former_hardware=body.former_hardware,
    )
    await decide_by_access(request, principal, command, node.node_id)
    return await _joined(gateway, node.node_id)


def _open_gateway(request: Request) -> tuple[Gateway, str]:
    """Return the gateway and the client's address; raises a 409, 429 or 503 if it is closed."""
    gateway = gateway_of(request)
    if gateway.settings.recorded:
        raise ApiError(409, "recorded_simulation", "recorded simulation is read-only")
    if not gateway.access.ready:
        raise unavailable("starting", "access ledger not read yet; retry")
    address = request.client.host if request.client else ""
    gateway.joins.check_address(address, monotonic_ns())
    return gateway, address


async def _parsed(request: Request, model: type[M]) -> M:
    """Return the body; fields of a newer agent are ignored."""
    body = await json_body(request)
    return parse_body(model, {name: body[name] for name in body if name in model.model_fields})


async def _verified_token(gateway: Gateway, text: str) -> NodeTokenCreated | None:
    """Return a known token; one that was created a moment ago is known after a catch-up."""
    parsed = parse_key(text)
    if parsed is not None and parsed.key_id not in gateway.access.view.enrolled.tokens:
        await gateway.access.catch_up()
    return gateway.access.view.enrolled.verify_token(text)


async def _authenticated(gateway: Gateway, credential: str) -> EnrolledNode | Refusal:
    registry = gateway.access.view.enrolled
    answer = registry.authenticate(credential, now_ms())
    if isinstance(answer, EnrolledNode):
        return answer
    await gateway.access.catch_up()
    return registry.authenticate(credential, now_ms())


async def _joined(gateway: Gateway, node_id: str) -> Response:
    ca = await asyncio.to_thread(_read_ca, gateway.settings.tls_ca)
    node = gateway.access.view.enrolled.nodes[node_id]
    joined = Joined(
        node_id=node_id,
        pool=node.pool,
        approved=node.approved,
        executors=gateway.settings.executors,
        expires_at=node.expires_at,
        installation=gateway.access.view.installation,
        ca=ca,
    )
    return Response(joined.model_dump_json(), media_type="application/json")


def _read_ca(path: Path | None) -> str:
    """Return the present CA, which a renewal replaces; empty if it is not named or not readable."""
    try:
        text = path.read_text(encoding="ascii") if path is not None else ""
    except (OSError, ValueError) as error:
        log.error("CA of nodes not readable", extra={"reason": str(error)})
        return ""
    return text if len(text) <= MAX_CA_CHARS else ""
