"""The upstreams of a pool, and what changes their room: requests, failures, probes and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

import aiohttp

from services.throttle.upstreams.failures import describe_reasons
from services.throttle.upstreams.probes import PROBE_S, UpstreamProbe
from services.throttle.upstreams.request_errors import RequestFailure
from services.throttle.upstreams.upstream import PooledUpstream
from shared.contracts.endpoints import Upstream

AFTER_S = 0.001
"""Added to the wait for the end of a cool-down, so that it is over then."""


class PoolMembers:
    """`changed` is set when the capacity, the overload or what is available changes."""

    def __init__(self, secrets: Callable[[str], str | None], clock: Callable[[], float]) -> None:
        self.changed = asyncio.Event()
        self._secrets = secrets
        self._clock = clock
        self._probes: dict[str, UpstreamProbe] = {}
        self._leaving: set[PooledUpstream] = set()
        """Upstreams that are no longer configured, with requests in flight."""
        self._turn = 0.0
        self._known: tuple[object, ...] = ()
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def all(self) -> Sequence[PooledUpstream]:
        return [probe.upstream for probe in self._probes.values()]

    @property
    def capacity(self) -> int:
        now = self._clock()
        leaving = sum(upstream.in_flight for upstream in self._leaving)
        return leaving + sum(upstream.capacity(now) for upstream in self.all)

    @property
    def takes_requests(self) -> bool:
        """Return whether the capacity is above 0."""
        if any(upstream.in_flight for upstream in self._leaving):
            return True
        now = self._clock()
        return any(upstream.in_flight or upstream.room(now) for upstream in self.all)

    @property
    def is_overloaded(self) -> bool:
        now = self._clock()
        return any(upstream.is_overloaded(now) for upstream in self.all)

    def configure(self, upstreams: Sequence[Upstream]) -> None:
        before, self._probes = self._probes, {}
        for settings in upstreams:
            probe = before.get(settings.name)
            if probe is not None and probe.upstream.is_same_engine(settings):
                probe.upstream.configure(settings)
            else:
                probe = UpstreamProbe(PooledUpstream(settings))
            self._probes[settings.name] = probe
        kept = set(self.all)
        removed = (probe.upstream for probe in before.values())
        self._leaving.update(item for item in removed if item.in_flight and item not in kept)
        self._read_secrets()
        self.refresh()

    async def probe(self, session: aiohttp.ClientSession) -> None:
        """Probe every upstream once, all at the same time."""
        self._read_secrets()
        await asyncio.gather(*(probe.run(session) for probe in self._probes.values()))
        self.refresh()

    def available(self, failed: Collection[PooledUpstream]) -> list[PooledUpstream]:
        """Return those that get requests now, also without room, but not those that failed."""
        now = self._clock()
        return [
            upstream for upstream in self.all if not upstream.reason(now) and upstream not in failed
        ]

    def reasons(self) -> list[tuple[str, str]]:
        """Return the name of each upstream that gets no request, and why."""
        now = self._clock()
        states = (upstream.state(now) for upstream in self.all)
        return [(state.name, state.reason) for state in states if state.reason]

    def away(self) -> str:
        """Return why no upstream can serve; empty if one can, or only pauses."""
        now = self._clock()
        if any(not item.reason(now) or item.is_pausing(now) for item in self.all):
            return ""
        return describe_reasons(self.reasons())

    def wait_s(self) -> float:
        """Return when the first upstream may be available again, as far as is known."""
        return min(self._cool_downs(), default=PROBE_S)

    def begin(self, upstream: PooledUpstream) -> bool:
        """Count a request that is sent now; returns whether it is a trial."""
        self._turn = max(upstream.turn, self._turn)
        upstream.turn = self._turn + 1 / upstream.weight
        upstream.in_flight += 1
        return upstream.breaker.start(self._clock())

    def answered(self, upstream: PooledUpstream, *, is_trial: bool) -> None:
        """Note the first byte of an answer: a trial has succeeded."""
        if is_trial:
            upstream.breaker.succeed(self._clock(), is_trial=True)
            self.refresh()

    def doubt(self, upstream: PooledUpstream) -> None:
        """Count a suspect failure, as another upstream served the same request."""
        upstream.confirm(self._clock())
        self.refresh()

    def succeed(self, upstream: PooledUpstream) -> None:
        """Count an answer that was read to its end."""
        now = self._clock()
        before = upstream.capacity(now)
        upstream.breaker.succeed(now, is_trial=False)
        self._end(upstream, before, now)

    def leave(self, upstream: PooledUpstream, *, is_trial: bool = False) -> None:
        """Count a request that the client left."""
        now = self._clock()
        before = upstream.capacity(now)
        upstream.breaker.abandon(is_trial=is_trial)
        self._end(upstream, before, now)

    def fail(
        self, upstream: PooledUpstream, failure: RequestFailure, *, is_trial: bool = False
    ) -> None:
        now = self._clock()
        before = upstream.capacity(now)
        upstream.fail(failure, now, is_trial=is_trial)
        self._end(upstream, before, now)

    def _end(self, upstream: PooledUpstream, before: int, now: float) -> None:
        upstream.in_flight -= 1
        if upstream in self._leaving and not upstream.in_flight:
            self._leaving.discard(upstream)
        if self._waiting or self._leaving or upstream.capacity(now) != before:
            self.refresh()

    async def wait_for_room(self, deadline_s: float) -> None:
        """Wait until a request has ended or the room has changed. Raises TimeoutError."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout_at(deadline_s):
                await waiter
        finally:
            self._waiting.remove(waiter)

    def refresh(self) -> None:
        """Signal a change, and come back when the next cool-down ends."""
        known = (self.capacity, self.is_overloaded, *self.reasons())
        if known != self._known:
            self._known = known
            self.changed.set()
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self.close()
        cool_down_s = min(self._cool_downs(), default=None)
        if cool_down_s is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(cool_down_s + AFTER_S, self.refresh)

    def close(self) -> None:
        """Forget the next cool-down."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cool_downs(self) -> list[float]:
        now = self._clock()
        waits = (item.breaker.wait_s(now) for item in self.all if not item.drained)
        return [wait_s for wait_s in waits if wait_s > 0]

    def _read_secrets(self) -> None:
        for upstream in self.all:
            if upstream.settings.key is not None:
                upstream.set_secret(self._secrets(upstream.settings.key))
