"""When the output of a job is complete, which ends every stream of a job that has ended."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from services.gateway.streams.job_log import JobLog, JobNow

POLL_S = 2.0
SOON_S = 0.25
"""As `POLL_S`, for `SOON_FOR_S` after the output of a worker was complete."""
SOON_FOR_S = 5.0
SETTLED_S = 6.0
"""Silence after the end of a job in which its last lines arrive where a worker's end of output does
not, as of a node that is away: an agent reports the end of a worker before its last lines, and
sends them again 5 s after an executor has not taken them."""


ReadJob = Callable[[], Awaitable[JobNow | None]]
"""Returns None as long as the read model cannot be read."""


class Completion:
    """Decides when a job's output is complete: the job has ended, and so has the output of each
    worker of its last attempt, or no line came for a while.

    After a silence the log is read to where it ends at that moment, so that a reader that is behind
    misses nothing. `read_job` is called every `POLL_S` at most, or every `SOON_S`.
    """

    def __init__(self, read_job: ReadJob, log: JobLog) -> None:
        self.job: JobNow | None = None
        """The job as it was read last."""
        self._read_job = read_job
        self._log = log
        self._ended_workers = 0
        self._soon_until_s = self._read_at_s = -math.inf
        self._quiet_since_s = 0.0
        self._end: int | None = None

    def pause_s(self) -> float:
        """Return how long to wait for lines before the job is looked at again, s."""
        now_s = asyncio.get_running_loop().time()
        if self._log.ended_workers != self._ended_workers:
            self._ended_workers = self._log.ended_workers
            self._soon_until_s = now_s + SOON_FOR_S
        return SOON_S if now_s < self._soon_until_s else POLL_S

    def note_lines(self) -> None:
        """Begin the silence anew."""
        self._quiet_since_s, self._end = asyncio.get_running_loop().time(), None

    def missing_workers(self) -> list[int]:
        """Return the workers with an output that has not ended, after `reached` returned true."""
        job = self.job
        if job is None or not (job.attempt and job.prints and job.started):
            return []
        return self._log.open_workers(job)

    async def reached(self, position: int, end: Callable[[], Awaitable[int | None]]) -> bool:
        """Return whether all is read at this offset of the log; `end` returns where it ends."""
        job = await self._job_now()
        if job is None or not job.has_ended:
            return False
        has_output = job.attempt > 0 and job.prints
        if has_output and not self._log.open_workers(job):
            return True
        now_s = asyncio.get_running_loop().time()
        if has_output and now_s - self._quiet_since_s < SETTLED_S:
            return False
        if self._end is None:
            self._end = await end()
        return self._end is not None and position >= self._end

    async def _job_now(self) -> JobNow | None:
        """Return the job, which is not read again once it has ended; None between two readings."""
        if self.job is not None and self.job.has_ended:
            return self.job
        now_s = asyncio.get_running_loop().time()
        if now_s - self._read_at_s < self.pause_s():
            return None
        self._read_at_s, job = now_s, await self._read_job()
        self.job = job or self.job
        if job is not None and job.has_ended:
            self.note_lines()
        return job
