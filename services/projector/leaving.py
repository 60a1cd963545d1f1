"""Lets what is old leave beside the projection, which waits for neither disk nor network."""

from __future__ import annotations

import asyncio
import logging

import asyncpg

from services.projector.settings import ProjectorSettings
from shared.bus.archive.opening import open_store
from shared.bus.clock import now_ms
from shared.projections.database import connect, terminate_after
from shared.projections.records import RecordRetention
from shared.projections.retention import Retention

log = logging.getLogger(__name__)

PAUSE_S = 60.0
"""Pause after what was due has left, or could not."""
STEP_S = 120.0
"""Limit of one batch, its upload included."""
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class Leaving:
    """Works only where histories or jobs are kept for a number of days."""

    def __init__(self, settings: ProjectorSettings) -> None:
        self._settings = settings

    async def run(self) -> None:
        """Let what is due leave, until cancelled; what fails is tried again after a pause."""
        while self._settings.job_history_d or self._settings.records_d:
            try:
                await self.leave()
            except FAILURES as error:
                log.warning("old rows do not leave", extra={"reason": str(error)[:200]})
            await asyncio.sleep(PAUSE_S)

    async def leave(self) -> None:
        """Let all leave that is due. Raises ArchiveUnreachable, or an error of Postgres."""
        settings = self._settings
        store = open_store(settings.archive)
        due: list[Retention | RecordRetention] = []
        if settings.job_history_d:
            due.append(Retention(store, settings.job_history_d))
        if settings.records_d:
            due.append(RecordRetention(store, settings.records_d))
        conn = await connect(settings.postgres, settings.schema_name, timeout_s=STEP_S)
        try:
            for retention in due:
                is_more_due = True
                while is_more_due:
                    with terminate_after(conn, STEP_S):
                        is_more_due = await retention.step(conn, now_ms())
        finally:
            await conn.close(timeout=2)
