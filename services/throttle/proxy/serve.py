"""The path of one request: reserved in the ledger, sent to an engine, relayed, settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.enqueue import Rejection
from services.throttle.dispatch import Dispatcher
from services.throttle.interaction_key import InteractionIds
from services.throttle.proxy.authentication import Authenticator, find_endpoint
from services.throttle.proxy.bodies import BodyReader
from services.throttle.proxy.engine_call import answer_count, engine_call, failed_answer
from services.throttle.proxy.lookup import Dispatchers, choose_dispatcher, unavailable
from services.throttle.proxy.open_requests import OpenEntry, OpenRequests
from services.throttle.proxy.options import RequestOptions, read_options
from services.throttle.proxy.prompts import PromptTokenizer, PromptTokens
from services.throttle.proxy.rate_headers import rate_headers
from services.throttle.proxy.relaying import AnswerRelay
from services.throttle.proxy.settlement import RequestSettlement
from services.throttle.proxy.unrecorded import UnrecordedRefusals
from services.throttle.proxy.whole_response import WholeResponse
from services.throttle.relay.client_stream import ClientGone
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.prefixes import prefix_hashes
from services.throttle.relay.prompt_size import PromptSize
from services.throttle.relay.request import LIMIT_FIELDS, RequestBody, Route
from services.throttle.tickets import LaneLost, Ticket
from services.throttle.upstreams.calls import UpstreamsFailed
from shared.bus.clock import now_ms
from shared.bus.ids import new_id
from shared.contracts.endpoints import MOST_TOKENS, EndpointConfigured
from shared.contracts.llm import LlmRequestRejected, LlmRequestStarted, ServeLlmRequest
from shared.contracts.registry import Bearer
from shared.ledger.decider import Input
from shared.ledger.errors import Busy, LaneRevoked, Quarantined
from shared.telemetry.spans import OpenSpan

FORWARDED = ("accept", "content-type", "traceparent", "tracestate")
"""Headers of the client that the engine gets."""


@dataclass(slots=True)
class ReadRequest:
    """A request that was read and may be served."""

    bearer: Bearer
    tenant: str
    body: RequestBody
    size: PromptSize
    options: RequestOptions
    endpoint: EndpointConfigured
    arrived_s: float


class RequestServer:
    """Serves requests of the OpenAI API at the endpoints whose lanes this process holds."""

    def __init__(
        self,
        authenticator: Authenticator,
        dispatchers: Dispatchers,
        prompts: PromptTokenizer,
        prefix_key: bytes,
        open_requests: OpenRequests,
        interaction_ids: InteractionIds,
        unrecorded: UnrecordedRefusals,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._authenticator = authenticator
        self._access = authenticator.access
        self._dispatchers = dispatchers
        self._prompts = prompts
        self._prefix_key = prefix_key
        self._ids = interaction_ids
        self._unrecorded = unrecorded
        self._clock = clock
        self._open_requests = open_requests
        self._bodies = BodyReader()

    def close(self) -> None:
        self._bodies.close()

    async def serve(
        self, request: web.BaseRequest, route: Route, span: OpenSpan
    ) -> web.StreamResponse:
        """Serve a request to its end. Raises ErrorAnswer for one that is not served."""
        with self._open_requests.enter() as entry:
            read = await self._read(request, route, entry)
            response = await self._serve(request, read, span)
            if isinstance(response, WholeResponse):
                # It is sent while it is counted: a client may be slow to read it.
                entry.hold_answer(response.size_bytes)
                try:
                    await response.prepare(request)
                except ConnectionError:
                    raise asyncio.CancelledError from None
            return response

    async def _serve(
        self, request: web.BaseRequest, read: ReadRequest, span: OpenSpan
    ) -> web.StreamResponse:
        span.set("tenant.id", read.tenant)
        dispatcher = await choose_dispatcher(
            self._dispatchers, self._access.view, read.bearer, read.endpoint
        )
        endpoint = dispatcher.state.endpoint or read.endpoint
        prompt = await self._prompts.count(endpoint, read.tenant, read.body, read.size)
        _check_tokens(read.body, endpoint, prompt)
        command = self._command(read, endpoint, prompt)
        item = Input("local", new_id(), command, traceparent=span.traceparent, tenant=read.tenant)
        headers = {"x-request-id": command.request_id, "x-berth-interaction": command.interaction}
        self._refuse_unrecorded(dispatcher, command, headers)
        try:
            async with dispatcher.ticket(command, item) as ticket:
                position = ticket.ahead
                event = await ticket.decided
                headers |= self._rate_headers(dispatcher, command, ticket.decided_at)
                if isinstance(event, LlmRequestRejected):
                    self._unrecorded.note(command)
                    raise _rejection(event, headers)
                if not dispatcher.ready:
                    raise LaneLost
                self._authenticator.check_again(read.bearer)
                headers |= {
                    "x-berth-queue-ms": str(event.waited_ms),
                    "x-berth-position": str(position),
                }
                reserved = _Reserved(command, ticket, prompt, headers, event)
                return await self._send(request, read, endpoint, dispatcher, reserved)
        except (Busy, LaneRevoked, Quarantined, LaneLost):
            raise unavailable() from None

    async def _read(self, request: web.BaseRequest, route: Route, entry: OpenEntry) -> ReadRequest:
        arrived_s = self._clock()
        bearer = await self._authenticator.authenticate(request)
        tenant = bearer.tenant or ""
        entry.assign_to(tenant)
        options = read_options(request.headers)
        body, size = await self._bodies.read(request, route, entry)
        endpoint = await find_endpoint(self._access, bearer, body.model)
        return ReadRequest(bearer, tenant, body, size, options, endpoint, arrived_s)

    def _command(
        self, read: ReadRequest, endpoint: EndpointConfigured, prompt: PromptTokens
    ) -> ServeLlmRequest:
        body, options = read.body, read.options
        names = read.tenant, endpoint.endpoint
        interaction = options.interaction or self._ids.issue(*names)
        # A new id need not be checked by its signature: that costs as much as to make it.
        is_issued = not options.interaction or self._ids.is_issued(*names, interaction)
        needs_prefix = endpoint.cached_blocks > 0 or endpoint.balance == "prefix"
        return ServeLlmRequest(
            request_id=new_id(),
            tenant=read.tenant,
            endpoint=endpoint.endpoint,
            application=options.application,
            user=body.user,
            interaction=interaction,
            is_issued=is_issued,
            prompt_tokens=prompt.tokens,
            max_output_tokens=body.output_limit(endpoint.output_limit),
            system_tokens=prompt.system_tokens,
            model=body.model if body.model != endpoint.endpoint else None,
            priority=options.priority,
            first_token_ms=options.first_token_ms,
            prefix=prefix_hashes(body.fields, self._prefix_key) if needs_prefix else (),
        )

    def _refuse_unrecorded(
        self, dispatcher: Dispatcher, command: ServeLlmRequest, headers: Mapping[str, str]
    ) -> None:
        """Raise ErrorAnswer for a request that is refused without a record."""
        rejection = self._unrecorded.refuse(dispatcher.state, command, at := now_ms())
        if rejection is not None:
            raise _rejection(rejection, {**headers, **self._rate_headers(dispatcher, command, at)})

    def _rate_headers(
        self, dispatcher: Dispatcher, command: ServeLlmRequest, at: int
    ) -> dict[str, str]:
        """Return what is left at a time of the ledger; the budgets follow its clock."""
        served = ServedRequest(
            command.request_id,
            command.tenant,
            command.prompt_tokens,
            command.max_output_tokens,
            application=command.application,
            user=command.user,
            model=command.model or command.endpoint,
        )
        state = dispatcher.state
        return rate_headers(state, served, at - state.stepped_ms)

    async def _send(
        self,
        request: web.BaseRequest,
        read: ReadRequest,
        endpoint: EndpointConfigured,
        dispatcher: Dispatcher,
        reserved: _Reserved,
    ) -> web.StreamResponse:
        """Send the request to an engine, and settle it whatever happens."""
        ticket, prompt = reserved.ticket, reserved.prompt
        limit = reserved.command.max_output_tokens
        answers = self._prompts.answers(endpoint.endpoint)
        tokens_of = partial(answers.estimate, read.tenant)
        count = answer_count(read.body, limit, prompt.size.most_tokens, tokens_of)
        relay = AnswerRelay(request, read.body, count, ticket, limit)
        end = RequestSettlement(count, whole_tokens=0 if read.body.streamable else limit)
        passed = {name: request.headers[name] for name in FORWARDED if name in request.headers}
        call = engine_call(read.body, endpoint, passed, reserved.command.prefix)
        ticket.cut_end = partial(end.report_cut, ticket.request_id)
        overhead_s = self._clock() - read.arrived_s - reserved.started.waited_ms / 1000
        reserved.headers["x-berth-overhead-ms"] = f"{max(1000 * overhead_s, 0):.1f}"
        try:
            async with dispatcher.upstreams.send(call) as answer:
                end.upstream, end.is_refused = answer.upstream, answer.status >= 400
                response = await relay.pass_on(answer, reserved.headers)
                end.outcome = "failed" if relay.reason else "completed"
                if end.outcome == "completed":
                    answers.observe(read.tenant, count.text_bytes, count.believed_tokens or 0)
                    if ticket.first_at:
                        served_s = asyncio.get_running_loop().time() - ticket.first_at
                        ttft_s = self._clock() - read.arrived_s - served_s
                        dispatcher.retraining.note(ttft_s, served_s, count.output_tokens)
                return response
        except UpstreamsFailed as failed:
            end.outcome, end.reason, end.is_refused = "failed", failed.code, True
            raise failed_answer(failed, reserved.headers) from None
        except ErrorAnswer:
            end.outcome = "failed"
            raise
        except ClientGone as gone:
            end.reason = "" if relay.has_passed_all else gone.reason
            raise asyncio.CancelledError from None
        finally:
            end.reason = end.reason or relay.reason
            if relay.has_passed_all and not end.reason:
                # OpenAI's client closes the connection at the last event, before the engine does.
                end.outcome = "completed"
            dispatcher.finish(ticket, end.report(ticket.request_id))
            if not end.is_refused:
                self._prompts.learn(
                    endpoint.endpoint, read.tenant, prompt.size, count.prompt_tokens
                )


@dataclass(slots=True)
class _Reserved:
    """A request whose reservation is in the ledger, with the headers of its response."""

    command: ServeLlmRequest
    ticket: Ticket
    prompt: PromptTokens
    headers: dict[str, str]
    started: LlmRequestStarted


def _check_tokens(body: RequestBody, endpoint: EndpointConfigured, prompt: PromptTokens) -> None:
    """Raise ErrorAnswer for more tokens than any message may name."""
    counts = {"body": prompt.tokens}
    if names := LIMIT_FIELDS[body.route]:
        counts[names[-1]] = body.output_limit(endpoint.output_limit)
    for field, tokens in counts.items():
        if tokens > MOST_TOKENS:
            text = f"{field}: {tokens} tokens in all; at most {MOST_TOKENS} are allowed"
            raise refuse("invalid_body", text, param=field)


def _rejection(event: LlmRequestRejected | Rejection, headers: Mapping[str, str]) -> ErrorAnswer:
    return refuse(event.reason, event.detail, retry_after_s=event.retry_after_s, headers=headers)
