"""Builds the parts of the gateway that the routes use, and runs them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from fastapi import Request

from services.gateway.access import AccessDirectory
from services.gateway.bundles import Bundles
from services.gateway.kafka.ingress import Ingress
from services.gateway.kafka.outbox import Outbox
from services.gateway.limits.denials import DeniedAttempts
from services.gateway.limits.join_limits import JoinLimits
from services.gateway.limits.stream_places import StreamPlaces
from services.gateway.reads.database import Database
from services.gateway.reads.queue_starts import QueueStarts
from services.gateway.reads.recorded_specs import SpecReads
from services.gateway.sealing import CHANGES, Sealing
from services.gateway.settings import GatewaySettings
from services.gateway.streams.hub import EventHub
from services.gateway.streams.recent_lines import RecentLines
from services.gateway.tokens import Tokens
from services.gateway.transfers import Transfers
from shared.bus.archive.opening import with_archive
from shared.bus.clock import now_ms
from shared.bus.fatal import supervise
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.contracts.job_commands import SubmitJob
from shared.http.rate import Rate, TokenBuckets
from shared.job_logs.log_store import JobLogStore
from shared.oidc.key_set import KeySet
from shared.telemetry.ring import OtlpRing
from shared.telemetry.setup import Telemetry
from shared.telemetry.upkeep import run_upkeep

OPENINGS = Rate(0.1, 300)
"""Terminals opened by one tenant: each stays in the ledger of access, which all services read."""
RING_SPANS = 100_000
RECENT_JOBS = 100_000


class RecentJob(NamedTuple):
    """Lane and user of a submission, which admission may still refuse."""

    tenant: str
    lane: int
    user: str


class RecentJobs:
    """Recently submitted jobs: a cancel may arrive before they are in Postgres."""

    def __init__(self, max_jobs: int = RECENT_JOBS) -> None:
        self._jobs: OrderedDict[str, RecentJob] = OrderedDict()
        self._max_jobs = max_jobs

    def note(self, command: SubmitJob, lane: int) -> None:
        """Note a submission; of several with one id the first is the job."""
        job = RecentJob(command.tenant, lane, command.spec.user)
        self._jobs.setdefault(command.job_id, job)
        if len(self._jobs) > self._max_jobs:
            self._jobs.popitem(last=False)

    def find(self, job_id: str, tenant: str | None) -> RecentJob | None:
        """Return a job of the tenant, of any tenant if None; None if it is unknown."""
        job = self._jobs.get(job_id.partition(".")[0])
        return job if job is not None and tenant in (None, job.tenant) else None


@dataclass(slots=True)
class Gateway:
    """The parts of one gateway process."""

    settings: GatewaySettings
    telemetry: Telemetry
    access: AccessDirectory
    outbox: Outbox
    ingress: Ingress
    hub: EventHub
    database: Database
    starts: QueueStarts
    denials: DeniedAttempts
    open_log: Callable[[], Log]
    buckets: TokenBuckets
    streams: StreamPlaces
    specs: SpecReads
    sealing: Sealing
    bundles: Bundles
    recent_lines: RecentLines
    job_logs: JobLogStore | None
    transfers: Transfers
    ring: OtlpRing = field(default_factory=lambda: OtlpRing(RING_SPANS))
    recent: RecentJobs = field(default_factory=RecentJobs)
    joins: JoinLimits = field(default_factory=JoinLimits)
    secret_changes: TokenBuckets = field(default_factory=lambda: TokenBuckets(CHANGES))

    terminals: TokenBuckets = field(default_factory=lambda: TokenBuckets(OPENINGS))

    def shown_ms(self) -> int:
        """Return the moment that answers show, ms: now, or the last one of a recording."""
        return self.settings.recorded_at or now_ms()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the background tasks; one that raises ends the process.

        A recorded simulation has no services, so nothing is sent.
        """
        reading = (self.access, self.outbox, self.hub, self.recent_lines)
        sending = (self.ingress, self.denials, self.bundles, self.transfers)
        parts = reading if self.settings.recorded else (*reading, *sending)
        tasks = [supervise(part.run(), type(part).__name__) for part in parts]
        tasks.append(supervise(run_upkeep(self.telemetry.metrics), "upkeep"))
        try:
            yield
        finally:
            self.hub.end_all("shutting_down")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.database.stop()


def wire_gateway(settings: GatewaySettings, telemetry: Telemetry) -> Gateway:
    """Build a gateway on a Kafka broker."""

    def open_log() -> Log:
        return with_archive(KafkaLog(settings.connection, client="berth-gateway"), settings.archive)

    access = AccessDirectory(open_log, tokens_of(settings))
    recent = RecentJobs()
    rate = Rate(settings.tenant_rate, settings.tenant_burst)
    outbox = Outbox(settings.connection, linger_ms=settings.linger_ms)
    ingress = Ingress(
        settings.connection,
        settings.instance,
        access,
        outbox,
        telemetry,
        recent.note,
        rate,
        alone_with=0 if settings.idempotent else settings.partitions,
    )
    job_logs = JobLogStore(settings.job_logs) if settings.job_logs else None
    hub = EventHub(open_log, settings.partitions, settings.stream_queue)
    database = Database(settings.postgres)
    denials = DeniedAttempts(outbox, settings.instance or "gateway")
    return Gateway(
        settings,
        telemetry,
        access,
        outbox,
        ingress,
        hub,
        database,
        QueueStarts(database),
        denials,
        open_log,
        TokenBuckets(rate),
        StreamPlaces(settings.stream_limits, lambda: access.view.active_tenants),
        SpecReads(open_log),
        Sealing(settings.secret_keys),
        Bundles(settings),
        RecentLines(open_log, settings.partitions, job_logs),
        job_logs,
        Transfers(access, outbox, database, open_log),
        recent=recent,
    )


def tokens_of(settings: GatewaySettings) -> Tokens | None:
    """Return the verifier of OIDC tokens; None without an issuer."""
    rules = settings.token_rules
    return Tokens(rules, KeySet(settings.oidc_keys, settings.oidc_ca)) if rules else None


def gateway_of(request: Request) -> Gateway:
    """Return the gateway that serves the request."""
    gateway = request.app.state.gateway
    assert isinstance(gateway, Gateway)
    return gateway
