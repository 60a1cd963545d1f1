"""The shell of the throttle: a dispatcher per lane, the fold of `access`, the proxy."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from aiohttp import web

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from services.throttle.dispatch import Dispatcher
from services.throttle.figures import figures
from services.throttle.interaction_key import InteractionIds, read_interaction_key
from services.throttle.proxy.app import OpenAiProxy
from services.throttle.proxy.authentication import Authenticator
from services.throttle.proxy.connection import connections
from services.throttle.proxy.open_requests import OpenRequests
from services.throttle.proxy.prompts import PromptTokenizer
from services.throttle.proxy.serve import RequestServer
from services.throttle.proxy.unrecorded import UnrecordedRefusals
from services.throttle.settings import ThrottleSettings
from services.throttle.topic.files import AnswerFiles
from services.throttle.topic.publisher import AnswerLog, AnswerPublisher, KafkaAnswers
from services.throttle.topic.records import RequestRecords, with_counts
from services.throttle.topic.requests import TopicRequests
from services.throttle.upstreams.pool import UpstreamPool
from shared.bus.archive.opening import with_archive
from shared.bus.hosting.access import AccessFollower
from shared.bus.hosting.host import run_service
from shared.bus.hosting.lanes import Lanes
from shared.bus.hosting.probe import probe_lanes
from shared.bus.lane.lane import Lane
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.bus.logs.retention_watch import Kept, RetentionWatch
from shared.contracts.base import Model, UnknownType
from shared.contracts.codec import decode_command
from shared.contracts.llm import LlmRequestRejected, ServeLlmRequest
from shared.http.http_listener import listen
from shared.http.server_settings import server_certificate
from shared.ledger.decider import Fact
from shared.oidc.key_set import KeySet
from shared.process.heap import settle_heap
from shared.telemetry.setup import Telemetry, start_telemetry
from shared.telemetry.shell import observer, serve_metrics

DRAIN_S = 0.5

REQUESTS = "llm.requests"

log = logging.getLogger(__name__)


def run(settings: ThrottleSettings) -> None:
    """Serve until SIGTERM."""
    telemetry = start_telemetry("throttle", settings)
    shell = ThrottleShell(
        settings,
        lambda: with_archive(
            KafkaLog(settings.connection, client="berth-throttle"), settings.archive
        ),
        telemetry,
    )
    serve_metrics(telemetry, settings, "throttle")

    async def settle() -> None:
        await shell.serving.wait()
        settle_heap()

    async def run_beside(lanes: Lanes[Any]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(settle())
            group.create_task(shell.serve())
            group.create_task(shell.remove_old_answers())
            group.create_task(shell.watch_retention())
            group.create_task(probe_lanes(lanes, telemetry.metrics, figures))

    try:
        run_service(
            Throttle(),
            settings=settings,
            decode=shell.decode,
            on_accepted=shell.on_accepted,
            on_lane=shell.dispatch,
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
    """The parts of the throttle besides its decider: dispatchers, upstreams and the proxy."""

    def __init__(
        self,
        settings: ThrottleSettings,
        connect: Callable[[], Log],
        telemetry: Telemetry,
        open_answers: Callable[[], AnswerLog] | None = None,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._open_answers = open_answers or self._kafka_answers
        self._prompts = PromptTokenizer(settings.tokenizers)
        self._ids = InteractionIds(read_interaction_key(settings.interaction_key, settings.data))
        self._telemetry = telemetry
        self._observe = observer(telemetry)
        self._dispatchers: dict[int, Dispatcher] = {}
        certificate = server_certificate(settings)
        telemetry.metrics.watch_certificate(certificate)
        self._tls = certificate.context if certificate is not None else None
        self.open_requests = OpenRequests(settings.open_request_limits)
        self.port = 0
        self.serving = asyncio.Event()

    def decode(self, topic: str, type_: str, data: bytes) -> Model:
        """Decode a record of `llm.requests`; what is reserved for its body is counted here."""
        command = requests_only(topic, type_, data)
        assert isinstance(command, ServeLlmRequest)
        interaction = command.interaction or self._ids.issue(command.tenant, command.endpoint)
        issued = self._ids.is_issued(command.tenant, command.endpoint, interaction)
        counted = with_counts(command, data, self._prompts)
        return counted.model_copy(update={"interaction": interaction, "is_issued": issued})

    def on_accepted(self, facts: list[Fact], parents: list[str], started_ns: int) -> None:
        self._observe(facts, parents, started_ns)
        self._count_rejections(facts)
        for fact in facts[:1]:
            dispatcher = self._dispatchers.get(fact.partition)
            if dispatcher is not None:
                dispatcher.apply(facts)

    def _count_rejections(self, facts: list[Fact]) -> None:
        for fact in facts:
            if isinstance(fact.event, LlmRequestRejected):
                held = self._dispatchers.get(fact.partition)
                endpoint = held.state.endpoint_name if held is not None else ""
                self._count_rejection(endpoint, fact.event.reason)

    def _count_rejection(self, endpoint: str, reason: str) -> None:
        self._telemetry.metrics.llm_rejections.labels(endpoint, reason).inc()

    async def dispatch(self, lane: Lane[EndpointState]) -> None:
        """Serve one lane while it is held."""
        pool = UpstreamPool(self._read_secret, tls=upstream_tls(self._settings.upstream_ca))
        if lane.state.endpoint is not None:
            pool.configure(lane.state.endpoint)
        topic = self._topic_requests(lane.partition, pool)
        dispatcher = self._dispatchers[lane.partition] = Dispatcher(lane, pool, topic)
        try:
            await dispatcher.run()
        finally:
            del self._dispatchers[lane.partition]
            await topic.close()
            await pool.close()

    async def serve(self) -> None:
        """Serve the proxy once the fold of `access` has caught up, and keep the fold current."""
        access = AccessFollower(self._connect)
        authenticator = self._authenticator(access)
        server = RequestServer(
            authenticator,
            self._held,
            self._prompts,
            secrets.token_bytes(16),
            self.open_requests,
            self._ids,
            UnrecordedRefusals(self._count_rejection),
        )
        proxy = OpenAiProxy(authenticator, server, self._telemetry.spans)
        http = web.Server(proxy.handle, handler_cancellation=True)
        runner = web.ServerRunner(http, shutdown_timeout=DRAIN_S)
        async with AsyncExitStack() as open_:
            open_.callback(server.close)
            open_.push_async_callback(runner.cleanup)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(access.run())
                await runner.setup()
                await access.caught_up.wait()
                listener = await listen(runner, self._settings, self._tls, connections(http))
                open_.callback(listener.close)
                self._announce(listener)

    async def remove_old_answers(self) -> None:
        """Remove answer files as old as their topics are kept; returns at once without a folder."""
        if self._settings.answers is not None:
            await AnswerFiles(self._settings.answers).keep_for(3600 * self._settings.prompts_kept_h)

    async def watch_retention(self) -> None:
        """Report whether the broker removes old prompts."""
        settings = self._settings
        kept_ms = round(3_600_000 * settings.prompts_kept_h)
        # Kafka removes prompts by segments of an eighth: see `infra.broker.retention`.
        kept = Kept(REQUESTS, settings.partitions, kept_ms, kept_ms // 8)
        watch = RetentionWatch(self._connect, kept)
        self._telemetry.metrics.watch_retention(REQUESTS, watch.behind_s)
        await watch.run()

    def _authenticator(self, access: AccessFollower) -> Authenticator:
        settings = self._settings
        rules = settings.token_rules
        keys = KeySet(settings.oidc_keys, settings.oidc_ca) if rules is not None else None
        return Authenticator(access, rules, keys)

    def _topic_requests(self, lane: int, pool: UpstreamPool) -> TopicRequests:
        folder = self._settings.answers
        files = None if folder is None else AnswerFiles(folder)
        answers = AnswerPublisher(self._open_answers, lane, files)
        return TopicRequests(pool, RequestRecords(self._connect()), answers, self._prompts)

    def _kafka_answers(self) -> KafkaAnswers:
        return KafkaAnswers(self._settings.connection, linger_ms=0, client="berth-throttle")

    def _held(self) -> Mapping[int, Dispatcher]:
        return self._dispatchers

    def _read_secret(self, name: str) -> str | None:
        """Return the API key of an upstream; None where no file has it."""
        folder = self._settings.upstream_keys
        if folder is None:
            return None
        try:
            return (folder / name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            log.warning("secret cannot be read", extra={"name_of_secret": name, "why": str(error)})
            return None

    def _announce(self, listener: asyncio.Server) -> None:
        self.port = listener.sockets[0].getsockname()[1]
        self.serving.set()
        log.info("proxy listening", extra={"host": self._settings.host, "port": self.port})


def upstream_tls(authority: Path | None) -> ssl.SSLContext | None:
    """Return the context that trusts this authority; None for those of the system."""
    return None if authority is None else ssl.create_default_context(cafile=str(authority))
