"""The throttle's shell: the emulated engine of each lane, the fold of `access`, the proxy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aiohttp import web

from services.throttle.core.decide import Throttle
from services.throttle.core.state import Lane
from services.throttle.engine import EmulatedEngine
from services.throttle.figures import figures
from services.throttle.followers import Followers
from services.throttle.proxy import Proxy
from services.throttle.settings import ThrottleSettings
from shared.bus.access import AccessFollower
from shared.bus.domain import Domain
from shared.bus.host import run_service
from shared.bus.kafka import KafkaLog
from shared.bus.lanes import Lanes
from shared.bus.log import Log
from shared.bus.probe import probe_lanes
from shared.contracts.base import Model, UnknownType
from shared.contracts.codec import decode_command
from shared.contracts.llm import EngineAdvanced, LlmRequestStarted, ServeLlmRequest
from shared.ledger.decider import Fact
from shared.listening import server_tls
from shared.telemetry.setup import Telemetry, start_telemetry
from shared.telemetry.shell import observer, serve_metrics

IDLE_LOOK_S = 5.0
DRAIN_S = 0.5

log = logging.getLogger(__name__)


def run(settings: ThrottleSettings) -> None:
    """Serves until SIGTERM."""
    telemetry = start_telemetry("throttle", settings)
    shell = Shell(
        settings, lambda: KafkaLog(settings.connection, client="berth-throttle"), telemetry
    )
    serve_metrics(telemetry, settings, "throttle")

    async def beside(lanes: Lanes[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(shell.serve(lanes))
            group.create_task(probe_lanes(lanes, telemetry.metrics, figures))

    try:
        run_service(
            Throttle(settings.line),
            settings=settings,
            decode=requests_only,
            on_accepted=shell.accepted,
            on_lane=shell.drive,
            background=beside,
        )
    finally:
        telemetry.spans.shutdown()


def requests_only(topic: str, type_: str, data: bytes) -> Model:
    """What else lies on `llm.requests` is refused as unknown."""
    if type_ != ServeLlmRequest.TYPE:
        raise UnknownType(type_)
    return decode_command(type_, data)


class Shell:
    """What the throttle does beside deciding."""

    def __init__(
        self, settings: ThrottleSettings, connect: Callable[[], Log], telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._telemetry = telemetry
        self._observe = observer(telemetry)
        self._followers = Followers()
        self._tls = server_tls(settings)
        self._stirred: dict[int, asyncio.Event] = {}
        self.port = 0
        self.serving = asyncio.Event()

    def accepted(self, facts: list[Fact], parents: list[str], started_ns: int) -> None:
        self._observe(facts, parents, started_ns)
        self._followers.accepted(facts)
        for fact in facts:
            stirred = self._stirred.get(fact.partition)
            if stirred is not None and isinstance(fact.event, LlmRequestStarted):
                stirred.set()

    async def drive(self, domain: Domain[Lane]) -> None:
        """One lane's emulated engine; it begins with what the ledger says is running."""
        engine = EmulatedEngine(self._settings.seed, self._settings.prefill_tokens_per_s)
        stirred = self._stirred[domain.partition] = asyncio.Event()
        try:
            while True:
                engine.hold(domain.state.running)
                if domain.state.running:
                    await self._work(domain, engine)
                await _set(stirred, IDLE_LOOK_S)
        finally:
            self._stirred.pop(domain.partition, None)
            self._followers.lane_lost(domain.partition)

    async def _work(self, domain: Domain[Lane], engine: EmulatedEngine) -> None:
        """Until nobody is running; the engine goes on while its progress is being appended."""
        at = time.monotonic()
        while domain.state.running:
            await asyncio.sleep(self._settings.tick_ms / 1000)
            before, at = at, time.monotonic()
            endpoint = domain.state.endpoint
            made = engine.advance(at - before, endpoint.tokens_per_s if endpoint else 0.0)
            if made:
                await domain.offer(EngineAdvanced(made=made))
            engine.hold(domain.state.running)

    async def serve(self, lanes: Lanes[Any]) -> None:
        await self.serve_domains(lambda: lanes.domains)

    async def serve_domains(self, domains: Callable[[], Mapping[int, Domain[Lane]]]) -> None:
        """The proxy, once it knows all keys that there were; and from then on what changes."""
        access = AccessFollower(self._connect)
        proxy = Proxy(access, domains, self._followers, self._telemetry.spans, self._settings.line)
        runner = web.AppRunner(proxy.app(), access_log=None, shutdown_timeout=DRAIN_S)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(access.run())
                await runner.setup()
                await access.caught_up.wait()
                await self._listen(runner)
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        host, port = self._settings.host, self._settings.port
        await web.TCPSite(runner, host, port, ssl_context=self._tls).start()
        self.port = runner.addresses[0][1]
        self.serving.set()
        log.info("proxy listens", extra={"host": host, "port": self.port})


async def _set(event: asyncio.Event, at_most_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most_s):
            await event.wait()
    event.clear()
