"""An OpenAI-compatible HTTP endpoint: each request becomes a local input of the decider.

A request is answered only after its record is accepted. Prompts stay in memory for as long as
their request: only counts go to the ledger and to spans.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import uuid5

from aiohttp import web

from services.throttle.core.estimate import estimate_wait
from services.throttle.core.state import EndpointState
from services.throttle.errors import OpenAiError, rejection_error, unavailable_error
from services.throttle.followers import RequestFollowers, RequestProgress
from services.throttle.openai import (
    CompletionKind,
    CompletionRequest,
    CompletionResponse,
    InvalidCompletion,
    parse_request,
)
from services.throttle.streaming import complete_response, stream_response
from shared.bus.access import CATCH_UP_S, AccessFollower
from shared.bus.ids import new_id
from shared.bus.lane import Lane
from shared.contracts.access import EndpointConfigured
from shared.contracts.identity import BERTH
from shared.contracts.keys import parse_bearer
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected, ServeLlmRequest
from shared.ledger.decider import Fact, Input
from shared.ledger.errors import Busy, LaneRevoked, Quarantined
from shared.telemetry.spans import OpenSpan, Spans

MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_ID_CHARS = 256
POLL_S = 0.02


class OpenAiProxy:
    """The HTTP handlers; `lanes` returns the lanes held now, `access` is polled elsewhere."""

    def __init__(
        self,
        access: AccessFollower,
        lanes: Callable[[], Mapping[int, Lane[EndpointState]]],
        followers: RequestFollowers,
        spans: Spans,
        queue_limit: int,
    ) -> None:
        self._access = access
        self._lanes = lanes
        self._followers = followers
        self._spans = spans
        self._queue_limit = queue_limit

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/chat/completions", self._complete_chat)
        app.router.add_post("/v1/completions", self._complete_text)
        app.router.add_get("/v1/models", self._list_models)
        return app

    async def _complete_chat(self, request: web.Request) -> web.StreamResponse:
        return await self._respond(request, "chat")

    async def _complete_text(self, request: web.Request) -> web.StreamResponse:
        return await self._respond(request, "text")

    async def _list_models(self, request: web.Request) -> web.Response:
        try:
            await self._authenticate(request)
        except OpenAiError as error:
            return error.response()
        models = [{"id": name, "object": "model"} for name in sorted(self._access.view.endpoints)]
        return web.json_response({"object": "list", "data": models})

    async def _respond(self, request: web.Request, kind: CompletionKind) -> web.StreamResponse:
        parent = request.headers.get("traceparent", "")
        with self._spans.span("llm", parent, {"http.request.method": "POST"}) as span:
            try:
                response = await self._serve(request, kind, span)
            except OpenAiError as error:
                response = error.response()
            span.set("http.response.status_code", response.status)
            return response

    async def _serve(
        self, request: web.Request, kind: CompletionKind, span: OpenSpan
    ) -> web.StreamResponse:
        tenant = await self._authenticate(request)
        span.set("tenant.id", tenant)
        completion = await _parse_body(request, kind)
        endpoint = await self._find_endpoint(completion)
        request_id = _scoped_request_id(request, tenant, endpoint)
        async with self._enqueued(request_id, tenant, endpoint, completion, span) as entry:
            progress, headers = entry
            await progress.until_started()
            if progress.lost:
                raise unavailable_error()
            if progress.rejected is not None:
                raise rejection_error(progress.rejected, headers)
            headers |= {"x-berth-queue-wait-ms": str(progress.waited_ms)}
            response = CompletionResponse(kind, completion, request_id, int(time.time()))
            if completion.stream:
                return await stream_response(request, completion, response, progress, headers)
            return await complete_response(response, progress, headers)

    async def _authenticate(self, request: web.Request) -> str:
        """Return the tenant of the request's key."""
        key = parse_bearer(request.headers.get("authorization"))
        bearer = await self._access.authenticate(key)
        if bearer is None:
            headers = {"www-authenticate": "Bearer"}
            raise OpenAiError(401, "invalid_api_key", "invalid API key", headers)
        if bearer.tenant is None or not bearer.has_role("submitter"):
            text = "role submitter of a tenant is required"
            raise OpenAiError(403, "not_allowed", text)
        return bearer.tenant

    async def _find_endpoint(self, completion: CompletionRequest) -> EndpointConfigured:
        endpoint = self._access.view.endpoint(completion.model)
        if endpoint is None:
            await self._access.catch_up()
            endpoint = self._access.view.endpoint(completion.model)
        if endpoint is None:
            raise OpenAiError(404, "model_not_found", "model: no endpoint of this name")
        return endpoint

    @asynccontextmanager
    async def _enqueued(
        self,
        request_id: str,
        tenant: str,
        endpoint: EndpointConfigured,
        completion: CompletionRequest,
        span: OpenSpan,
    ) -> AsyncIterator[tuple[RequestProgress, dict[str, str]]]:
        """Offer the request to its lane; the block begins when it is in the ledger.

        Yields its progress and the headers of its response.
        """
        lane = self._lanes().get(endpoint.partition)
        if lane is None:
            raise unavailable_error()
        if self._access.view.is_active(tenant):
            await _until_lane_serves(lane, endpoint, tenant)
        command = ServeLlmRequest(
            request_id=request_id,
            tenant=tenant,
            endpoint=endpoint.endpoint,
            prompt_tokens=completion.prompt_tokens,
            max_output_tokens=completion.output_tokens,
        )
        item = Input("local", new_id(), command, traceparent=span.traceparent, tenant=tenant)
        with self._followers.follow(request_id, endpoint.partition) as progress:
            try:
                facts = await lane.offer(item)
            except (Busy, LaneRevoked, Quarantined):
                raise unavailable_error() from None
            headers = limit_headers(lane.state, tenant, self._queue_limit)
            headers["x-request-id"] = request_id
            if not _is_answered_by(facts, request_id):
                resume(progress, lane.state, request_id, tenant, headers)
            yield progress, headers


async def _parse_body(request: web.Request, kind: CompletionKind) -> CompletionRequest:
    try:
        return parse_request(kind, await request.read())
    except InvalidCompletion as error:
        raise OpenAiError(400, "invalid_body", str(error)) from None
    except web.HTTPRequestEntityTooLarge:
        text = f"body: too large; at most {MAX_BODY_BYTES} bytes are allowed"
        raise OpenAiError(413, "body_too_large", text) from None


def _scoped_request_id(request: web.Request, tenant: str, endpoint: EndpointConfigured) -> str:
    """Return an id within tenant and endpoint, so that no tenant can take an id of another."""
    client_id = request.headers.get("x-request-id", "") or new_id()
    if len(client_id) > MAX_ID_CHARS or not client_id.isascii():
        text = f"x-request-id: invalid; at most {MAX_ID_CHARS} ASCII characters are allowed"
        raise OpenAiError(400, "invalid_request_id", text)
    return str(uuid5(uuid5(uuid5(BERTH, tenant), endpoint.endpoint), client_id))


async def _until_lane_serves(
    lane: Lane[EndpointState], endpoint: EndpointConfigured, tenant: str
) -> None:
    """Wait until the lane, which reads `access` at its own pace, accepts the tenant."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CATCH_UP_S):
            while not _serves(lane.state, endpoint, tenant):
                await asyncio.sleep(POLL_S)


def _serves(state: EndpointState, endpoint: EndpointConfigured, tenant: str) -> bool:
    account = state.accounts.get(tenant)
    same_endpoint = state.endpoint is not None and state.endpoint_name == endpoint.endpoint
    return same_endpoint and account is not None and account.active


def resume(
    progress: RequestProgress,
    state: EndpointState,
    request_id: str,
    tenant: str,
    headers: Mapping[str, str],
) -> None:
    """Follow a request that was accepted before; one that has ended cannot be followed."""
    request = state.find_request(request_id)
    if request is None or request.tenant != tenant:
        text = "x-request-id: already served; answers are not kept"
        raise OpenAiError(409, "already_served", text, headers)
    if request_id in state.running:
        progress.waited_ms = request.started_at - request.queued_at
        progress.made_tokens = request.made_tokens


def limit_headers(state: EndpointState, tenant: str, queue_limit: int) -> dict[str, str]:
    """Return how many more requests of the tenant may wait, and when its queue will be empty."""
    account = state.accounts.get(tenant)
    waiting = len(account.queue) if account else 0
    reset_s = 0.0
    if account and account.queue:
        reset_s = estimate_wait(state, state.waiting[account.queue[-1]]).wait_s
    return {
        "x-ratelimit-limit-requests": str(queue_limit),
        "x-ratelimit-remaining-requests": str(max(queue_limit - waiting, 0)),
        "x-ratelimit-reset-requests": f"{reset_s:.3f}s",
    }


def _is_answered_by(facts: list[Fact], request_id: str) -> bool:
    return any(
        isinstance(fact.event, LlmRequestQueued | LlmRequestRejected)
        and fact.event.request_id == request_id
        for fact in facts
    )
