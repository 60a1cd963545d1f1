"""The shell of the throttle: one emulated engine per lane, the fold of `access`, the proxy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiohttp import web

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.engine import EmulatedEngine
from services.throttle.figures import figures
from services.throttle.followers import RequestFollowers
from services.throttle.proxy import OpenAiProxy
from services.throttle.settings import ThrottleSettings
from shared.bus.access import AccessFollower
from shared.bus.host import run_service
from shared.bus.kafka import KafkaLog
from shared.bus.lane import Lane
from shared.bus.lanes import Lanes
from shared.bus.log import Log
from shared.bus.probe import probe_lanes
from shared.contracts.base import Model, UnknownType
from shared.contracts.codec import decode_command
from shared.contracts.llm import EngineAdvanced, LlmRequestStarted, ServeLlmRequest
from shared.http_listener import listen
from shared.ledger.decider import Fact
from shared.server_settings import server_certificate
from shared.telemetry.setup import Telemetry, start_telemetry
from shared.telemetry.shell import observer, serve_metrics

IDLE_POLL_S = 5.0
DRAIN_S = 0.5

log = logging.getLogger(__name__)


def run(settings: ThrottleSettings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("throttle", settings)
    shell = ThrottleShell(
        settings, lambda: KafkaLog(settings.connection, client="berth-throttle"), telemetry
    )
    serve_metrics(telemetry, settings, "throttle")

    async def run_beside(lanes: Lanes[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(shell.serve(lanes))
            group.create_task(probe_lanes(lanes, telemetry.metrics, figures))

    try:
        run_service(
            Throttle(settings.line),
            settings=settings,
            decode=requests_only,
            on_accepted=shell.on_accepted,
            on_lane=shell.drive_engine,
            background=run_beside,
        )
    finally:
        telemetry.spans.shutdown()


def requests_only(topic: str, type_: str, data: bytes) -> Model:
    """Decode a record of `llm.requests`; any other type than the request is unknown there."""
    if type_ != ServeLlmRequest.TYPE:
        raise UnknownType(type_)
    return decode_command(type_, data)


class ThrottleShell:
    """The parts of the throttle besides its decider: engines, followers and the proxy."""

    def __init__(
        self, settings: ThrottleSettings, connect: Callable[[], Log], telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._telemetry = telemetry
        self._observe = observer(telemetry)
        self._followers = RequestFollowers()
        certificate = server_certificate(settings)
        telemetry.metrics.watch_certificate(certificate)
        self._tls = certificate.context if certificate is not None else None
        self._started: dict[int, asyncio.Event] = {}
        self.port = 0
        self.serving = asyncio.Event()

    def on_accepted(self, facts: list[Fact], parents: list[str], started_ns: int) -> None:
        self._observe(facts, parents, started_ns)
        self._followers.apply(facts)
        for fact in facts:
            started = self._started.get(fact.partition)
            if started is not None and isinstance(fact.event, LlmRequestStarted):
                started.set()

    async def drive_engine(self, lane: Lane[EndpointState]) -> None:
        """Run one lane's emulated engine, beginning with the requests that run by the ledger."""
        engine = EmulatedEngine(self._settings.seed, self._settings.prefill_tokens_per_s)
        started = self._started[lane.partition] = asyncio.Event()
        try:
            while True:
                engine.hold(lane.state.running)
                if lane.state.running:
                    await self._run_batch(lane, engine)
                await _wait_and_clear(started, IDLE_POLL_S)
        finally:
            self._started.pop(lane.partition, None)
            self._followers.lose_lane(lane.partition)

    async def _run_batch(self, lane: Lane[EndpointState], engine: EmulatedEngine) -> None:
        """Return when no request runs; the engine goes on while its progress is being appended."""
        at = time.monotonic()
        while lane.state.running:
            await asyncio.sleep(self._settings.tick_ms / 1000)
            before, at = at, time.monotonic()
            endpoint = lane.state.endpoint
            progress = engine.advance(at - before, endpoint.tokens_per_s if endpoint else 0.0)
            if progress:
                await lane.offer(EngineAdvanced(made=progress))
            engine.hold(lane.state.running)

    async def serve(self, lanes: Lanes[Any]) -> None:
        await self.serve_lanes(lambda: lanes.held)

    async def serve_lanes(self, lanes: Callable[[], Mapping[int, Lane[EndpointState]]]) -> None:
        """Serve the proxy once the fold of `access` has caught up, and keep the fold current."""
        access = AccessFollower(self._connect)
        proxy = OpenAiProxy(
            access, lanes, self._followers, self._telemetry.spans, self._settings.line
        )
        runner = web.AppRunner(proxy.app(), access_log=None, shutdown_timeout=DRAIN_S)
        async with AsyncExitStack() as open_:
            open_.push_async_callback(runner.cleanup)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(access.run())
                await runner.setup()
                await access.caught_up.wait()
                listener = await listen(runner, self._settings, self._tls)
                open_.callback(listener.close)
                self._announce(listener)

    def _announce(self, listener: asyncio.Server) -> None:
        self.port = listener.sockets[0].getsockname()[1]
        self.serving.set()
        log.info("proxy listening", extra={"host": self._settings.host, "port": self.port})


async def _wait_and_clear(event: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
    event.clear()
