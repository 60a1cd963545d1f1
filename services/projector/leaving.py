"""Lets what is old leave beside the projection, which waits for neither disk nor network.

Output of jobs goes by itself, and with the jobs that leave.
"""

from __future__ import annotations

import asyncio
import logging

import asyncpg

from services.projector.output import Output
from services.projector.settings import ProjectorSettings
from shared.bus.archive.opening import open_store
from shared.bus.clock import now_ms
from shared.objects.objects import StoreUnreachable
from shared.projections.database import connect, terminate_after
from shared.projections.records import RecordRetention
from shared.projections.retention import Retention

log = logging.getLogger(__name__)

PAUSE_S = 60.0
"""Pause after what was due has left, or could not."""
STEP_S = 120.0
"""Limit of one batch, its upload included."""
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, StoreUnreachable)


class Leaving:
    """Works only where histories, jobs or output are kept for a number of days."""

    def __init__(self, settings: ProjectorSettings, output: Output | None = None) -> None:
        self._settings = settings
        self._output = output

    async def run(self) -> None:
        """Let what is due leave, until cancelled; what fails is tried again after a pause."""
        settings = self._settings
        while settings.job_history_d or settings.records_d or self._output is not None:
            try:
                await self.leave()
            except FAILURES as error:
                log.warning("old rows do not leave", extra={"reason": str(error)[:200]})
            await asyncio.sleep(PAUSE_S)

    async def leave(self) -> None:
        """Let all leave that is due. Raises ArchiveUnreachable, StoreUnreachable, or an error of
        Postgres."""
        settings, output = self._settings, self._output
        due: list[Retention | RecordRetention] = []
        if settings.job_history_d:
            due.append(Retention(open_store(settings.archive), settings.job_history_d))
        if settings.records_d:
            remove = output.remove_job if output is not None else None
            due.append(RecordRetention(open_store(settings.archive), settings.records_d, remove))
        conn = await connect(settings.postgres, settings.schema_name, timeout_s=STEP_S)
        try:
            if output is not None:
                with terminate_after(conn, STEP_S):
                    await output.read_rules(conn)
            for retention in due:
                is_more_due = True
                while is_more_due:
                    with terminate_after(conn, STEP_S):
                        is_more_due = await retention.step(conn, now_ms())
        finally:
            await conn.close(timeout=2)
        if output is not None:
            await output.remove_old(now_ms())
