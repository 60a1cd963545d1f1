"""Reports what the engines of a lane can take, and how each of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from services.throttle.core.state import EndpointState
from services.throttle.upstreams.pool import UpstreamPool
from shared.contracts.base import Local
from shared.contracts.llm import CapacityObserved, EngineStanding

LOAD_S = 10.0
"""Time between two reports of loads that have changed: each is kept in the ledger."""
HEALTH_S = 1.0
"""Time between two reports of engines that come and go."""

Standings = tuple[EngineStanding, ...]


class CapacityReports:
    """Reports at once what decides; loads, which are for readers, only now and then."""

    def __init__(
        self,
        state: Callable[[], EndpointState],
        upstreams: UpstreamPool,
        share: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`share` returns the part of free time that retraining may take."""
        self._state = state
        self._share = share
        self._upstreams = upstreams
        self._noted: Standings = ()
        self._noted_at = float("-inf")

    async def run(self, offer: Callable[[Local], Awaitable[None]]) -> None:
        """Report until cancelled."""
        changed = self._upstreams.changed
        while True:
            changed.clear()
            self.release_idle()
            now = asyncio.get_running_loop().time()
            observed = self.observe(now)
            if observed is not None:
                await offer(observed)
            with suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_S):
                    await changed.wait()

    def release_idle(self) -> None:
        """Leave the engines of an endpoint that was deleted, once they have nothing to do."""
        state, upstreams = self._state(), self._upstreams
        is_over = state.endpoint is None and not state.running and self._share() is None
        if is_over and upstreams.states():
            upstreams.release()

    def observe(self, now: float) -> CapacityObserved | None:
        """Return what is to be reported at this time, s; None if nothing is.

        A lane without an endpoint or engines has nothing to report: earlier releases cannot read
        the event, and their endpoints have no engines.
        """
        state, upstreams = self._state(), self._upstreams
        if state.endpoint is None or not (upstreams.states() or state.capacity):
            return None
        seen = upstreams.capacity, upstreams.overloaded, upstreams.away, self._share()
        engines = self._due(now)
        known = state.capacity, state.overloaded, state.away, state.retraining_share
        if not engines and seen == known:
            return None
        if engines:
            self._noted, self._noted_at = engines, now
        requests, overloaded, away, share = seen
        return CapacityObserved(
            requests=requests,
            overloaded=overloaded,
            away=away,
            engines=engines,
            retraining_share=share,
        )

    def _due(self, now: float) -> Standings:
        """Return the standings of the engines if they are to be noted, else none."""
        standings = tuple(
            EngineStanding(
                name=engine.name,
                available=engine.available,
                reason=engine.reason,
                in_flight=engine.in_flight,
                waiting=engine.waiting,
                kv_ratio=None if engine.kv_ratio is None else round(engine.kv_ratio, 3),
            )
            for engine in self._upstreams.states()
        )
        since_s = now - self._noted_at
        if standings == self._noted or since_s < HEALTH_S:
            return ()
        is_new_health = _health(standings) != _health(self._noted)
        return standings if is_new_health or since_s >= LOAD_S else ()


def _health(standings: Standings) -> list[tuple[str, bool, str]]:
    return [(engine.name, engine.available, engine.reason) for engine in standings]
