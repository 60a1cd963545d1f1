"""The shell of the notifier: reads and sends; after any failure it resumes at what is stored."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import asyncpg

from services.notifier import store
from services.notifier.delivery import ANSWER_S, DATABASE_DOWN, MAILS, Delivery
from services.notifier.intake import MAX_RECORDS, POLL_S, Intake
from services.notifier.settings import NotifierSettings
from shared.bus.archive.opening import with_archive
from shared.bus.hosting.access import AccessFollower
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.log import Log
from shared.http.rate import TokenBuckets
from shared.projections.database import connect, terminate_after
from shared.telemetry.figures import Figure
from shared.telemetry.metrics import CaughtUp, Metrics

log = logging.getLogger(__name__)

RETRY_S = 1.0
STANDBY_S = 2.0
GATHER_S = 0.2
SHOW_S = 5.0
"""Pause between two counts of what waits."""
THREADS = 1024
"""Threads for names and files, at most: a name server that is silent holds one per attempt."""


class Notifier:
    """Sends webhooks and mails; while Postgres is down it retries without limit."""

    def __init__(self, settings: NotifierSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._access = AccessFollower(lambda: self._open_log("notifier-access"))
        self._mails = TokenBuckets(MAILS)
        self.ready = False
        self.caught_up = CaughtUp()

    async def run(self) -> None:
        """Work until cancelled; a broken ledger raises and ends the process."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "names"))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._access.run())
            await self._access.caught_up.wait()
            while True:
                try:
                    await self._session()
                except* DATABASE_DOWN as failed:
                    reason = repr(failed.exceptions[0])
                    log.warning("notifications paused", extra={"reason": reason})
                await asyncio.sleep(RETRY_S)

    def _open_log(self, client: str) -> Log:
        connection, archive = self._settings.connection, self._settings.archive
        log = KafkaLog(connection, client=client, gather_ms=round(GATHER_S * 1000))
        return with_archive(log, archive)

    async def _session(self) -> None:
        """Work with two connections, one of which holds the lock, until one of them fails."""
        settings = self._settings
        dsn = settings.postgres
        reading = await connect(dsn, timeout_s=ANSWER_S)
        try:
            while not await reading.fetchval(store.TAKE):
                self.ready = True
                self.caught_up.note()
                await asyncio.sleep(STANDBY_S)
            sending = await connect(dsn, timeout_s=ANSWER_S)
            try:
                await self._work(reading, sending)
            finally:
                sending.terminate()
        finally:
            reading.terminate()

    async def _work(self, reading: asyncpg.Connection, sending: asyncpg.Connection) -> None:
        settings, view = self._settings, self._access.view
        delivery = Delivery(sending, view, settings, self._mails, self._observe)
        intake = Intake(
            reading, view, base_url=settings.public_url, sends_mail=bool(settings.smtp_host)
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(delivery.run())
            await self._follow(reading, intake, delivery)

    async def _follow(self, conn: asyncpg.Connection, intake: Intake, delivery: Delivery) -> None:
        with terminate_after(conn, ANSWER_S):
            tail, order = await intake.open(self._open_log("notifier"), self._settings.partitions)
        try:
            shown_s = 0.0
            while True:
                arrived = await tail.poll(POLL_S, MAX_RECORDS)
                # What a record follows from in `access` was accepted before it.
                if arrived:
                    await self._access.catch_up()
                with terminate_after(conn, ANSWER_S):
                    if await intake.take(order.release(arrived)):
                        delivery.wake.set()
                    if monotonic() - shown_s >= SHOW_S:
                        shown_s = monotonic()
                        await self._show(conn, intake)
                self.ready = True
                if len(arrived) < MAX_RECORDS:
                    if tail.caught_up:
                        self.caught_up.note()
                    # Records that come one by one would each cost a transaction.
                    await asyncio.sleep(GATHER_S)
        finally:
            await tail.stop()

    async def _show(self, conn: asyncpg.Connection, intake: Intake) -> None:
        if intake.dropped:
            self._metrics.notifications.labels("all", "dropped").inc(intake.dropped)
            intake.dropped = 0
        rows = {row["is_mail"]: row["waiting"] for row in await conn.fetch(store.WAITING)}
        kinds = ((False, "webhook"), (True, "mail"))
        self._metrics.show(
            [
                Figure("berth_notifications_waiting", rows.get(is_mail, 0), (kind,))
                for is_mail, kind in kinds
            ]
        )

    def _observe(self, kind: str, outcome: str) -> None:
        self._metrics.notifications.labels(kind, outcome).inc()
