"""The upstreams of an endpoint: chooses one per request, fails over, and knows their room."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager

from services.throttle.upstreams.answers import AnswerChunks
from services.throttle.upstreams.balance import least_loaded, prefix_affine, two_choices
from services.throttle.upstreams.body import ENCODER, BodyEncoder
from services.throttle.upstreams.calls import UpstreamAnswer, UpstreamCall
from services.throttle.upstreams.connections import UpstreamSessions
from services.throttle.upstreams.exchange import OpenAnswer, open_answer
from services.throttle.upstreams.failures import (
    UpstreamAttempt,
    closed,
    may_go_on,
    no_room,
    no_upstream,
    summarize,
)
from services.throttle.upstreams.members import PoolMembers
from services.throttle.upstreams.probes import PROBE_S, put_document
from services.throttle.upstreams.request_errors import RequestFailure
from services.throttle.upstreams.upstream import PooledUpstream, UpstreamState
from shared.contracts.endpoints import EndpointConfigured

MOST_ATTEMPTS = 3


class UpstreamPool:
    """Sends requests to the upstreams of one endpoint.

    `secrets` returns the API key of a name, or None. `clock` returns monotonic seconds; `draw`
    numbers from 0 up to 1 for `two_choices`. `tls` replaces the trusted certificates of the system.
    """

    def __init__(
        self,
        secrets: Callable[[str], str | None],
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._members = PoolMembers(secrets, clock)
        self._clock = clock
        self._draw = draw or random.Random().random
        self._tls = tls
        self._balance = "least_loaded"
        self._adapters: frozenset[str] = frozenset()
        self._open_sessions: UpstreamSessions | None = None
        self._is_closed = False

    def configure(self, settings: EndpointConfigured) -> None:
        """Take the upstreams; one whose address, model and key stay keeps its state."""
        self._balance = settings.balance
        self._adapters = frozenset(settings.adapters)
        self._members.configure(settings.upstreams)

    def release(self) -> None:
        """Leave all upstreams, of an endpoint that was deleted: none is probed any more."""
        self._members.configure(())

    async def run(self) -> None:
        """Probe health and load of every upstream until cancelled."""
        while True:
            await self._members.probe(self._sessions.kept)
            await asyncio.sleep(PROBE_S)

    async def close(self) -> None:
        """Close every connection; answers that are being read break off, and nothing is sent any
        more. One that was cancelled is finished by the next."""
        self._is_closed = True
        self._members.refresh()
        self._members.close()
        if self._open_sessions is not None:
            await self._open_sessions.close()
            self._open_sessions = None

    @property
    def capacity(self) -> int:
        """Return the requests in flight and those that may be sent besides them now."""
        return self._members.capacity

    @property
    def takes_requests(self) -> bool:
        """Return whether the capacity is above 0; cheaper than to count it."""
        return self._members.takes_requests

    @property
    def overloaded(self) -> bool:
        """Return whether an available engine reports waiting requests or a full KV cache."""
        return self._members.is_overloaded

    @property
    def away(self) -> str:
        """Return why no upstream can serve; empty if one can, or only requested a pause."""
        return self._members.away()

    @property
    def changed(self) -> asyncio.Event:
        """Return the event that is set when `capacity`, `overloaded` or the availability of an
        upstream changes; readers clear it."""
        return self._members.changed

    def states(self) -> tuple[UpstreamState, ...]:
        now = self._clock()
        return tuple(upstream.state(now) for upstream in self._members.all)

    async def put(self, path: str, document: object) -> dict[str, int]:
        """Put a document at a path of each upstream; return its status by name, 0: no answer."""
        upstreams, body = self._members.all, ENCODER.encode(document)
        sent = (put_document(self._sessions.kept, upstream, path, body) for upstream in upstreams)
        statuses = await asyncio.gather(*sent)
        return {item.name: status for item, status in zip(upstreams, statuses, strict=True)}

    def send(self, call: UpstreamCall) -> AbstractAsyncContextManager[UpstreamAnswer]:
        """Send a request; the block gets the answer after its first byte.

        Leaving the block before the end of the answer aborts the connection at once. Entering it
        raises UpstreamsFailed if no upstream answers.
        """
        return _SentCall(self, call)

    async def open(self, call: UpstreamCall) -> tuple[PooledUpstream, OpenAnswer]:
        """Return an answer and its upstream, for `finish`; use `send`."""
        deadline_s = asyncio.get_running_loop().time() + call.first_byte_timeout_s
        encoder = BodyEncoder(call.body, self._adapters)
        attempts: list[UpstreamAttempt] = []
        failed: list[PooledUpstream] = []
        while not self._is_closed and len(attempts) < MOST_ATTEMPTS and may_go_on(attempts):
            upstream = self._pick(self._members.available(failed), call.prefix)
            if upstream is None:
                upstream = await self._wait_for_room(call, failed, deadline_s)
                if upstream is None:
                    break
            result = await self._attempt(upstream, call, encoder, deadline_s)
            if isinstance(result, OpenAnswer):
                self._confirm(failed, attempts)
                return upstream, result
            failed.append(upstream)
            attempts.append(UpstreamAttempt(upstream.name, result))
        if self._is_closed:
            raise closed()
        if attempts:
            raise summarize(attempts)
        raise no_upstream(self._members.reasons(), self._members.wait_s())

    def finish(self, upstream: PooledUpstream, chunks: AnswerChunks) -> None:
        """Leave an answer: its connection is kept only if it was read to its end."""
        chunks.close()
        if chunks.has_ended:
            self._members.succeed(upstream)
        elif chunks.break_reason:
            self._members.fail(upstream, RequestFailure(502, chunks.break_reason, "failed"))
        else:
            self._members.leave(upstream)

    async def _wait_for_room(
        self, call: UpstreamCall, failed: Collection[PooledUpstream], deadline_s: float
    ) -> PooledUpstream | None:
        """Return the next upstream that has room again; None if none is available."""
        while not self._is_closed and (available := self._members.available(failed)):
            if (chosen := self._pick(available, call.prefix)) is not None:
                return chosen
            try:
                await self._members.wait_for_room(deadline_s)
            except TimeoutError:
                if failed:
                    return None
                raise no_room(call.first_byte_timeout_s) from None
        return None

    def _pick(self, available: Sequence[PooledUpstream], prefix: str) -> PooledUpstream | None:
        match self._balance:
            case "two_choices":
                return two_choices(available, self._draw)
            case "prefix":
                return prefix_affine(available, prefix)
            case _:
                return least_loaded(available)

    async def _attempt(
        self, upstream: PooledUpstream, call: UpstreamCall, encoder: BodyEncoder, deadline_s: float
    ) -> OpenAnswer | RequestFailure:
        members = self._members
        is_trial = members.begin(upstream)
        try:
            body = encoder.encode(upstream.settings.model)
            result = await open_answer(self._sessions, upstream, call, body, deadline_s)
        except BaseException:
            members.leave(upstream, is_trial=is_trial)
            raise
        if isinstance(result, RequestFailure):
            members.fail(upstream, result, is_trial=is_trial)
        else:
            members.answered(upstream, is_trial=is_trial)
        return result

    def _confirm(
        self, failed: Sequence[PooledUpstream], attempts: Sequence[UpstreamAttempt]
    ) -> None:
        for upstream, attempt in zip(failed, attempts, strict=True):
            if attempt.failure.verdict == "suspect":
                self._members.doubt(upstream)

    @property
    def _sessions(self) -> UpstreamSessions:
        """Return the sessions, which need a running loop to be made."""
        if self._open_sessions is None:
            self._open_sessions = UpstreamSessions(self._tls)
        return self._open_sessions


class _SentCall(AbstractAsyncContextManager[UpstreamAnswer]):
    """A request while it is served; a class, as a generator would cost more per request."""

    __slots__ = ("_call", "_chunks", "_pool", "_upstream")

    def __init__(self, pool: UpstreamPool, call: UpstreamCall) -> None:
        self._pool = pool
        self._call = call

    async def __aenter__(self) -> UpstreamAnswer:
        self._upstream, opened = await self._pool.open(self._call)
        self._chunks = opened.chunks
        return opened.answer

    async def __aexit__(self, *error: object) -> None:
        self._pool.finish(self._upstream, self._chunks)
