"""An OpenAI-compatible endpoint: each HTTP request is a local input of the decider.

It is answered only after its record is accepted. Prompts stay in this function's memory: counts
alone go on, to the ledger and to spans.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import uuid5

from aiohttp import web

from services.throttle.core.estimate import wait_of
from services.throttle.core.state import Lane
from services.throttle.followers import Followers, Progress
from services.throttle.openai import Answer, Ask, BadBody, Kind, read
from services.throttle.problem import Problem, elsewhere, of_rejection
from shared.bus.access import CATCH_UP_S, AccessFollower
from shared.bus.domain import Domain
from shared.bus.ids import new_id
from shared.contracts.access import EndpointConfigured
from shared.contracts.identity import BERTH
from shared.contracts.llm import LlmRequestQueued, LlmRequestRejected, ServeLlmRequest
from shared.ledger.decider import Fact, Input
from shared.ledger.errors import Busy, LaneLost
from shared.telemetry.spans import OpenSpan, Spans

LONGEST_BODY = 16 * 1024 * 1024
LONGEST_ID = 256
LOOK_S = 0.02


class Proxy:
    """`domains` tells the lanes held now; `access` is read on by somebody else."""

    def __init__(
        self,
        access: AccessFollower,
        domains: Callable[[], Mapping[int, Domain[Lane]]],
        followers: Followers,
        spans: Spans,
        line: int,
    ) -> None:
        self._access = access
        self._domains = domains
        self._followers = followers
        self._spans = spans
        self._line = line

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LONGEST_BODY)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._text)
        app.router.add_get("/v1/models", self._models)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "chat")

    async def _text(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, "text")

    async def _models(self, request: web.Request) -> web.Response:
        try:
            await self._tenant(request)
        except Problem as problem:
            return problem.response()
        found = [{"id": name, "object": "model"} for name in sorted(self._access.view.endpoints)]
        return web.json_response({"object": "list", "data": found})

    async def _answer(self, request: web.Request, kind: Kind) -> web.StreamResponse:
        parent = request.headers.get("traceparent", "")
        with self._spans.span("llm", parent, {"http.request.method": "POST"}) as span:
            try:
                response = await self._served(request, kind, span)
            except Problem as problem:
                response = problem.response()
            span.set("http.response.status_code", response.status)
            return response

    async def _served(self, request: web.Request, kind: Kind, span: OpenSpan) -> web.StreamResponse:
        tenant = await self._tenant(request)
        span.set("tenant.id", tenant)
        try:
            ask = read(kind, await request.read())
        except BadBody as error:
            raise Problem(400, "invalid_body", str(error)) from None
        except web.HTTPRequestEntityTooLarge:
            raise Problem(413, "body_too_large", f"at most {LONGEST_BODY} bytes") from None
        endpoint = await self._endpoint(ask)
        request_id = self._request_id(request, tenant, endpoint)
        async with self._joined(request_id, tenant, endpoint, ask, span) as (progress, headers):
            await progress.until_started()
            if progress.lost:
                raise elsewhere()
            if progress.rejected is not None:
                raise of_rejection(progress.rejected, headers)
            headers |= {"x-berth-queue-wait-ms": str(progress.waited_ms)}
            answer = Answer(kind, ask, request_id, int(time.time()))
            if ask.stream:
                return await _stream(request, ask, answer, progress, headers)
            return await _whole(answer, progress, headers)

    async def _tenant(self, request: web.Request) -> str:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        key = key.strip() if scheme.lower() == "bearer" else ""
        bearer = await self._access.authenticate(key)
        if bearer is None:
            raise Problem(401, "invalid_api_key", "no such key", {"www-authenticate": "Bearer"})
        if bearer.tenant is None or not bearer.has_role("submitter"):
            raise Problem(403, "not_allowed", "the key may not ask in a tenant's name")
        return bearer.tenant

    async def _endpoint(self, ask: Ask) -> EndpointConfigured:
        endpoint = self._access.view.endpoint(ask.model)
        if endpoint is None:
            await self._access.catch_up()
            endpoint = self._access.view.endpoint(ask.model)
        if endpoint is None:
            raise Problem(404, "model_not_found", "model: no endpoint of that name")
        return endpoint

    def _request_id(self, request: web.Request, tenant: str, endpoint: EndpointConfigured) -> str:
        """A client's own id counts for its tenant alone, so that nobody can take another's."""
        given = request.headers.get("x-request-id", "") or new_id()
        if len(given) > LONGEST_ID or not given.isascii():
            text = f"x-request-id: has at most {LONGEST_ID} characters, all of them ASCII"
            raise Problem(400, "invalid_request_id", text)
        return str(uuid5(uuid5(uuid5(BERTH, tenant), endpoint.endpoint), given))

    @asynccontextmanager
    async def _joined(
        self, request_id: str, tenant: str, endpoint: EndpointConfigured, ask: Ask, span: OpenSpan
    ) -> AsyncIterator[tuple[Progress, dict[str, str]]]:
        """The request is in the ledger when the block begins."""
        domain = self._domains().get(endpoint.partition)
        if domain is None:
            raise elsewhere()
        if self._access.view.is_active(tenant):
            await _heard(domain, endpoint, tenant)
        wish = ServeLlmRequest(
            request_id=request_id,
            tenant=tenant,
            endpoint=endpoint.endpoint,
            prompt_tokens=ask.prompt_tokens,
            max_output_tokens=ask.output_tokens,
        )
        given = Input("local", new_id(), wish, traceparent=span.traceparent, tenant=tenant)
        with self._followers.follow(request_id, endpoint.partition) as progress:
            try:
                facts = await domain.offer(given)
            except (Busy, LaneLost):
                raise elsewhere() from None
            headers = limits_of(domain.state, tenant, self._line, facts)
            headers["x-request-id"] = request_id
            if not _about(facts, request_id):
                catch_up(progress, domain.state, request_id, tenant, headers)
            yield progress, headers


async def _heard(domain: Domain[Lane], endpoint: EndpointConfigured, tenant: str) -> None:
    """Its lane reads `access` at a pace of its own, and refuses whom it has not heard of."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CATCH_UP_S):
            while not _knows(domain.state, endpoint, tenant):
                await asyncio.sleep(LOOK_S)


def _knows(lane: Lane, endpoint: EndpointConfigured, tenant: str) -> bool:
    account = lane.accounts.get(tenant)
    is_served = lane.endpoint is not None and lane.name == endpoint.endpoint
    return is_served and account is not None and account.active


def catch_up(
    progress: Progress, lane: Lane, request_id: str, tenant: str, headers: Mapping[str, str]
) -> None:
    """The id was accepted before: follow what is under way. Answers are not kept."""
    request = lane.request(request_id)
    if request is None or request.tenant != tenant:
        text = "a request with this x-request-id was served; answers are not kept"
        raise Problem(409, "already_served", text, headers)
    if request_id in lane.running:
        progress.waited_ms = request.started_at - request.queued_at
        progress.made = request.made


def limits_of(lane: Lane, tenant: str, line: int, facts: list[Fact]) -> dict[str, str]:
    """How many more requests the tenant may have waiting, and when its line will be empty."""
    account = lane.accounts.get(tenant)
    waiting = len(account.line) if account else 0
    reset_s = 0.0
    if account and account.line:
        reset_s = wait_of(lane, lane.waiting[account.line[-1]]).wait_s
    return {
        "x-ratelimit-limit-requests": str(line),
        "x-ratelimit-remaining-requests": str(max(line - waiting, 0)),
        "x-ratelimit-reset-requests": f"{reset_s:.3f}s",
    }


def _about(facts: list[Fact], request_id: str) -> bool:
    return any(
        isinstance(fact.event, LlmRequestQueued | LlmRequestRejected)
        and fact.event.request_id == request_id
        for fact in facts
    )


async def _whole(answer: Answer, progress: Progress, headers: Mapping[str, str]) -> web.Response:
    while not progress.ended:
        await progress.beyond(progress.made)
    if progress.lost:
        raise elsewhere()
    return web.json_response(answer.whole(progress.made), headers=headers)


async def _stream(
    request: web.Request, ask: Ask, answer: Answer, progress: Progress, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Server-sent events; a client that hangs up is served all the same, and charged."""
    response = web.StreamResponse(
        headers={**headers, "content-type": "text/event-stream", "cache-control": "no-cache"}
    )
    try:
        await response.prepare(request)
        sent = 0
        while not progress.ended or progress.made > sent:
            await progress.beyond(sent)
            if progress.made > sent:
                await _send(response, answer.piece(sent, progress.made))
                sent = progress.made
        if progress.done:
            await _finish(response, ask, answer, sent)
    except ConnectionResetError:
        return response
    return response


async def _finish(response: web.StreamResponse, ask: Ask, answer: Answer, tokens: int) -> None:
    """A stream that ends without `[DONE]` was cut: its lane was lost."""
    await _send(response, answer.last(tokens))
    if ask.wants_usage:
        await _send(response, answer.usage(tokens))
    await response.write(b"data: [DONE]\n\n")
    await response.write_eof()


async def _send(response: web.StreamResponse, chunk: Mapping[str, object]) -> None:
    await response.write(b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n")
