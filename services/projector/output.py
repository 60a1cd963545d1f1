"""Output of jobs: stored beside the projection, by the rules of each pool, and removed in time."""

from __future__ import annotations

import logging
from typing import NamedTuple

from asyncpg import Connection

from services.projector.settings import ProjectorSettings
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.pools import default_of
from shared.job_logs.chunk import JobKey
from shared.job_logs.log_store import JobLogStore
from shared.job_logs.writer import JobLogWriter

DAY_MS = 86_400_000
MIB = 2**20
REMOVAL_MS = 6 * 3_600_000
RULES = """
SELECT partition, settings::json->>'logs_kept_d' AS kept_d, settings::json->>'logs_mib' AS mib
FROM pool
"""

log = logging.getLogger(__name__)


class OutputRules(NamedTuple):
    """Of one pool: for how long output is kept, and how much of one job."""

    kept_d: float = default_of("logs_kept_d")
    mib: float = default_of("logs_mib")


class Output:
    """Stores output, and lets it go. `rules` are those of the lanes, as they were read last."""

    def __init__(self, settings: ProjectorSettings) -> None:
        self.store = JobLogStore(settings.job_logs, writes=True)
        self.rules: dict[int, OutputRules] = {}
        self.writer = JobLogWriter(
            lambda: KafkaLog(settings.connection, client="job-logs"),
            self.store,
            settings.partitions,
            self._most_bytes,
        )
        self._removed_ms = 0

    def _most_bytes(self, lane: int) -> int:
        return round(self.rules.get(lane, OutputRules()).mib * MIB)

    async def read_rules(self, conn: Connection) -> None:
        """Read the rules of all pools; events of earlier releases have none, and get defaults."""
        for row in await conn.fetch(RULES):
            declared = {name: float(row[name]) for name in OutputRules._fields if row[name]}
            self.rules[row["partition"]] = OutputRules(**declared)

    async def remove_old(self, now_ms: int) -> None:
        """Remove, now and then, what its pool does not keep. Raises StoreUnreachable.

        Output of a lane of which no rule was read stays.
        """
        if now_ms - self._removed_ms < REMOVAL_MS:
            return
        for lane, rules in self.rules.items():
            removed = await self.store.remove_before(lane, now_ms - round(rules.kept_d * DAY_MS))
            if removed:
                log.info("removed old output", extra={"lane": lane, "bytes": removed})
        self._removed_ms = now_ms

    async def remove_job(self, job: JobKey) -> None:
        """Remove what is stored of a job. Raises StoreUnreachable."""
        await self.store.remove_job(job)
