"""Reads requests again from `llm.requests`: no ledger, snapshot or log has a body."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import msgspec
from msgspec import Raw

from services.throttle.proxy.prompts import PromptTokenizer
from services.throttle.relay.errors import refuse
from services.throttle.relay.request import InvalidRequest, RequestBody, Route
from shared.bus.logs.log import Feed, Log
from shared.contracts.llm import ServeLlmRequest
from shared.ledger.cloudevents import Malformed, decode
from shared.ledger.errors import TailLost
from shared.ledger.partition import TP

TOPIC = "llm.requests"
READ_S = 10.0
POLL_S = 1.0


class TopicRequest(msgspec.Struct, frozen=True):
    """The fields of a command that a ledger does not have; the body stays as it was sent."""

    request_id: str
    body: Raw
    route: Route = "chat/completions"

    def read_body(self) -> RequestBody:
        """Decode the body of the request. Raises InvalidRequest."""
        return RequestBody.decode(self.route, bytes(self.body))


_DECODER = msgspec.json.Decoder(TopicRequest)


def with_counts(command: ServeLlmRequest, data: bytes, prompts: PromptTokenizer) -> ServeLlmRequest:
    """Return the command with what is reserved for its body, whatever the sender says.

    A body that is invalid stays as it is: its sender gets the reason when it is served.
    """
    if command.body is None:
        return command
    try:
        body = _DECODER.decode(data).read_body()
    except (InvalidRequest, msgspec.MsgspecError):
        return command
    estimate = prompts.estimate(command.endpoint, command.tenant, body)
    counts = {
        "prompt_tokens": max(command.prompt_tokens, estimate.tokens),
        "max_output_tokens": body.output_limit(0) or command.max_output_tokens,
        "system_tokens": max(command.system_tokens, estimate.system_tokens),
        "user": body.user or command.user,
        "model": body.model if body.model != command.endpoint else None,
    }
    return command.model_copy(update=counts)


class RecordPosition(NamedTuple):
    """A record of the topic."""

    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> RecordPosition:
        partition, offset = text.split("/")
        return cls(int(partition), int(offset))


class RequestRecords:
    """Reads records of one partition by their offsets, one at a time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._feed: Feed | None = None
        self._next = 0
        self._turn = asyncio.Lock()

    async def read(self, position: RecordPosition, request_id: str) -> RequestBody:
        """Return the body of the request at a position. Raises ErrorAnswer."""
        try:
            async with self._turn, asyncio.timeout(READ_S):
                value = await self._read(position)
            request = _DECODER.decode(decode(value).data)
            if request.request_id != request_id:
                raise Malformed("another request")
            return request.read_body()
        except (TailLost, TimeoutError, Malformed, msgspec.MsgspecError):
            text = f"body: {TOPIC} has the request no more; send it again"
            raise refuse("body_lost", text) from None
        except InvalidRequest as error:
            raise refuse("invalid_body", str(error), param=error.field) from None

    async def close(self) -> None:
        if self._feed is not None:
            await self._drop()
            await self._log.stop()

    async def _read(self, position: RecordPosition) -> bytes | None:
        tp = TP(TOPIC, position.partition)
        if self._feed is None:
            await self._log.start()
            self._feed = await self._log.feed({tp: position.offset})
        elif self._next != position.offset:
            await self._feed.seek(tp, position.offset)
        self._next = -1
        try:
            while True:
                for entry in (await self._feed.poll(POLL_S, 1)).get(tp, ()):
                    self._next = entry.offset + 1
                    return entry.value if entry.offset == position.offset else None
        except TailLost:
            await self._drop()
            raise

    async def _drop(self) -> None:
        feed, self._feed = self._feed, None
        if feed is not None:
            await feed.close()
