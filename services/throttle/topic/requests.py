"""Requests of one lane that came by `llm.requests`, from their start to their answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from services.throttle.core.state import EndpointState, OpenRequest
from services.throttle.handlers import Finish
from services.throttle.proxy.engine_call import (
    BROKEN,
    answer_count,
    broken_answer,
    engine_call,
    failed_answer,
)
from services.throttle.proxy.progress import AnswerProgress
from services.throttle.proxy.prompts import PromptTokenizer
from services.throttle.proxy.relaying import assemble_gathered
from services.throttle.proxy.settlement import RequestSettlement
from services.throttle.relay.errors import ErrorAnswer, refuse
from services.throttle.relay.prompt_size import prompt_size
from services.throttle.relay.request import RequestBody
from services.throttle.relay.usage import TokenCount
from services.throttle.relay.whole_answer import EngineError, is_stream, read_whole
from services.throttle.tickets import STOPPED, Ticket
from services.throttle.topic.answers import Answer, Sender, engine_answer, error_answer, refusal
from services.throttle.topic.publisher import AnswerPublisher
from services.throttle.topic.records import RecordPosition, RequestRecords
from services.throttle.upstreams.calls import UpstreamAnswer, UpstreamsFailed
from services.throttle.upstreams.pool import UpstreamPool
from shared.contracts.command_answers import CommandRefused
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    RequestEnd,
    ServeLlmRequest,
)
from shared.ledger.decider import Fact
from shared.ledger.errors import OutcomeUnknown

JSON = {"content-type": "application/json"}

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class StartedRequest:
    """A request that is being served, or is about to be."""

    ticket: Ticket
    request: OpenRequest
    endpoint: EndpointConfigured

    @property
    def sender(self) -> Sender:
        return sender_of(self.request, self.endpoint.endpoint)


class TopicRequests:
    """Serves the requests that the decider starts, and publishes an answer to each.

    The answer is published before the end is reported: a request that the ledger has as completed
    has its answer in the topic.
    """

    def __init__(
        self,
        upstreams: UpstreamPool,
        records: RequestRecords,
        answers: AnswerPublisher,
        prompts: PromptTokenizer,
    ) -> None:
        self._upstreams = upstreams
        self._records = records
        self._answers = answers
        self._prompts = prompts
        self._waiting: dict[str, Sender] = {}
        self._due: asyncio.Queue[StartedRequest | Answer] = asyncio.Queue()
        self._open: dict[str, StartedRequest] = {}

    def restore(self, state: EndpointState) -> None:
        """Take over the requests that wait since before this process."""
        for request in state.waiting.values():
            if request.place:
                sender = sender_of(request, state.endpoint_name)
                self._waiting.setdefault(request.request_id, sender)

    def apply(self, facts: Iterable[Fact]) -> None:
        """Note the requests that wait, and answer those that are refused or leave the queue."""
        for fact in facts:
            match fact.event:
                case LlmRequestQueued(place=place) as queued if place:
                    sender = Sender(
                        queued.request_id,
                        queued.tenant,
                        queued.endpoint,
                        fact.traceparent,
                        queued.interaction,
                    )
                    self._waiting[queued.request_id] = sender
                case LlmRequestStarted(request_id=request_id):
                    self._waiting.pop(request_id, None)
                case LlmRequestRejected() as rejected:
                    waiting = self._waiting.pop(rejected.request_id, None)
                    if waiting is not None:
                        answer = refusal(
                            waiting, rejected.reason, rejected.detail, rejected.retry_after_s
                        )
                        self._due.put_nowait(answer)
                case CommandRefused(command_type=ServeLlmRequest.TYPE) as refused:
                    sender = Sender(refused.of, refused.tenant, traceparent=fact.traceparent)
                    self._due.put_nowait(refusal(sender, refused.reason, refused.detail))

    @property
    def unanswered(self) -> Collection[str]:
        """Ids of the requests that were started and have no answer yet."""
        return self._open.keys()

    def start(self, ticket: Ticket, request: OpenRequest, endpoint: EndpointConfigured) -> None:
        """Serve a request whose reservation is in the ledger."""
        started = self._open[ticket.request_id] = StartedRequest(ticket, request, endpoint)
        self._due.put_nowait(started)

    async def run(self, finish: Finish) -> None:
        """Serve and answer until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                due = await self._due.get()
                if isinstance(due, Answer):
                    tasks.create_task(self._publish(due))
                else:
                    tasks.create_task(self._serve(due, finish))

    async def answer_lost(self, requests: Sequence[OpenRequest], endpoint: str) -> None:
        """Answer requests that an earlier process left running; none is served again."""
        for request in requests:
            text = "process: ended while an engine served the request; send it again"
            await self._publish(refusal(sender_of(request, endpoint), "lost", text))

    async def answer_stopped(self) -> None:
        """Answer the requests that this process cuts off, and those that it has refused."""
        for started in [*self._open.values()]:
            text = "process: stops while an engine serves the request; send it again"
            await self._publish(refusal(started.sender, STOPPED, text))
            del self._open[started.ticket.request_id]
        while not self._due.empty():
            due = self._due.get_nowait()
            if isinstance(due, Answer):
                await self._publish(due)

    async def close(self) -> None:
        await self._records.close()
        await self._answers.close()

    async def _publish(self, answer: Answer) -> bool:
        return await self._answers.publish(answer)

    async def _serve(self, started: StartedRequest, finish: Finish) -> None:
        try:
            answer, end = await self._answer(started)
        except ErrorAnswer as error:
            answer = error_answer(started.sender, error)
            end = not_served(started, answer.reason)
        except Exception:
            log.exception("request failed", extra={"request": started.ticket.request_id})
            answer = refusal(started.sender, "internal_error", "internal error")
            end = not_served(started, answer.reason)
        if not await self._publish(answer) and not end.reason:
            end = end.model_copy(update={"reason": "answer_not_published"})
        self._open.pop(started.ticket.request_id, None)
        finish(started.ticket, end)

    async def _answer(self, started: StartedRequest) -> tuple[Answer, RequestEnd]:
        """Return the answer and the end. Raises ErrorAnswer where no engine gets the request."""
        try:
            has_topic = await self._answers.has_topic(started.request.tenant)
        except OutcomeUnknown:
            has_topic = False
        if not has_topic:
            raise refuse("no_answer_topic", "tenant: has no topic of answers")
        position = RecordPosition.parse(started.request.place)
        body = await self._records.read(position, started.ticket.request_id)
        return await self._exchange(started, body)

    async def _exchange(
        self, started: StartedRequest, body: RequestBody
    ) -> tuple[Answer, RequestEnd]:
        """Send the request to an engine, and settle it by what it made."""
        served, to = started.request.served, started.sender
        size = prompt_size(body.fields)
        answers = self._prompts.answers(started.endpoint.endpoint)
        tokens_of = partial(answers.estimate, served.tenant)
        count = answer_count(body, served.max_output_tokens, size.most_tokens, tokens_of)
        whole_tokens = 0 if body.streamable else served.max_output_tokens
        end = RequestSettlement(count, outcome="failed", whole_tokens=whole_tokens)
        started.ticket.cut_end = partial(end.report_cut, started.ticket.request_id)
        limit = max(1, served.max_output_tokens // body.answers)
        headers = JSON | ({"traceparent": to.traceparent} if to.traceparent else {})
        call = engine_call(body, started.endpoint, headers, served.prefix, limit)
        try:
            async with self._upstreams.send(call) as received:
                end.upstream, end.is_refused = received.upstream, received.status >= 400
                progress = AnswerProgress(started.ticket, served.max_output_tokens)
                text = await read_answer(received, body, count, progress)
            answer = engine_answer(to, received.status, text)
            end.reason = answer.reason
            end.outcome = "failed" if answer.reason else "completed"
            if not answer.reason:
                answers.observe(served.tenant, count.text_bytes, count.believed_tokens or 0)
        except UpstreamsFailed as failed:
            end.reason, end.is_refused = failed.code, True
            answer = error_answer(to, failed_answer(failed, {}))
        except EngineError as error:
            end.reason = "engine_error"
            answer = refusal(to, "upstream_failed", str(error))
        except BROKEN as error:
            end.reason = "engine_broke_off"
            answer = error_answer(to, broken_answer(error, {}))
        if not end.is_refused:
            endpoint = started.endpoint.endpoint
            self._prompts.learn(endpoint, served.tenant, size, count.prompt_tokens)
        return answer, end.report(started.ticket.request_id)


async def read_answer(
    received: UpstreamAnswer, body: RequestBody, count: TokenCount, progress: AnswerProgress
) -> bytes:
    """Return the whole answer of an engine, counted while it arrives."""
    if is_stream(received.headers):
        return await assemble_gathered(received, body.route, count, progress)
    text = await read_whole(received.chunks)
    if received.status < 400:
        count.add_answer(text)
    return text


def sender_of(request: OpenRequest, endpoint: str) -> Sender:
    interaction = request.served.interaction
    return Sender(request.request_id, request.tenant, endpoint, request.traceparent, interaction)


def not_served(started: StartedRequest, reason: str) -> RequestEnd:
    """Return the end of a request that no engine was sent."""
    return RequestEnd(
        request_id=started.ticket.request_id,
        outcome="failed",
        output_tokens=0,
        prompt_tokens=0,
        reason=reason,
    )
