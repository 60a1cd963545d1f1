"""The projector's shell: reads and projects; after any failure it resumes at the stored cursors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

import asyncpg

from services.projector.leaving import Leaving
from services.projector.output import Output
from services.projector.settings import ProjectorSettings
from shared.bus.archive.opening import with_archive
from shared.bus.clock import now_ms
from shared.bus.fatal import supervise
from shared.bus.logs.kafka import KafkaLog
from shared.projections import cursor
from shared.projections.cursor import CursorMoved
from shared.projections.database import connect_by_key, terminate_after
from shared.projections.ledger_events import LedgerBatch
from shared.projections.project import project
from shared.projections.source import Source, prefetch
from shared.telemetry.metrics import CaughtUp, Metrics

log = logging.getLogger(__name__)

RETRY_S = 1.0
ANSWER_S = 60.0
"""Limit of one database call: a host that is down does not close its connections."""
POLL_S = 1.0
DATABASE_DOWN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class Projector:
    """Projects all ledgers into Postgres; while Postgres is down it retries without limit."""

    def __init__(self, settings: ProjectorSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self.ready = False
        self.caught_up = CaughtUp()
        self._lag = metrics.projection_lag_s.labels("all")
        self._events: Callable[[float], None] = metrics.inputs.labels("ledgers").inc

    async def run(self) -> None:
        """Project until cancelled; a broken ledger raises and ends the process."""
        output = Output(self._settings) if self._settings.job_logs else None
        beside = [asyncio.create_task(Leaving(self._settings, output).run())]
        if output is not None:
            self._metrics.watch_job_logs(output.writer.behind_s)
            beside.append(supervise(output.writer.run(), "output"))
        try:
            await self._project()
        finally:
            for task in beside:
                task.cancel()

    async def _project(self) -> None:
        while True:
            try:
                await self._session()
            except (*DATABASE_DOWN, CursorMoved) as error:
                self.ready = False
                log.warning("projection paused", extra={"reason": repr(error)})
                await asyncio.sleep(RETRY_S)

    async def _session(self) -> None:
        """Project with one connection and one reader from the stored cursors."""
        settings = self._settings
        conn = await connect_by_key(settings.postgres, settings.schema_name, timeout_s=ANSWER_S)
        client = with_archive(
            KafkaLog(settings.connection, client="projector", gather_ms=settings.gather_ms),
            settings.archive,
        )
        try:
            with terminate_after(conn, ANSWER_S):
                begin = await cursor.read(conn)
            source = Source(client, settings.partitions, begin)
            await source.start()
            try:
                await self._follow(conn, source)
            finally:
                await source.stop()
        finally:
            await conn.close(timeout=2)

    async def _follow(self, conn: asyncpg.Connection, source: Source) -> None:
        max_records = self._settings.batch_records
        async with aclosing(prefetch(lambda: source.poll(POLL_S, max_records))) as batches_ahead:
            async for batches in batches_ahead:
                if batches:
                    with terminate_after(conn, ANSWER_S):
                        await project(conn, batches)
                    self._observe(batches)
                self.ready = True
                if sum(len(batch.events) for batch in batches) < max_records:
                    self.caught_up.note()
                    await asyncio.sleep(self._settings.gather_ms / 1000)

    def _observe(self, batches: list[LedgerBatch]) -> None:
        now = now_ms()
        for batch in batches:
            self._events(len(batch.events))
            if batch.events:
                self._lag.observe(max(0, now - batch.events[0].at) / 1000)
