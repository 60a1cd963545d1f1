"""The followed output of a job in each of its pools, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from services.gateway.streams.completion import ReadJob
from services.gateway.streams.job_log import NextStay
from services.gateway.streams.log_lines import ENDED, JobOutput, Shows, follow_lines
from services.gateway.streams.sse import ALIVE, end_frame

AGAIN_S = 2.0
"""Pause before the row of a job is read again, where Postgres does not answer."""


class StayOutput(NamedTuple):
    """The output of a job in one of its pools, and the reader of its row there."""

    output: JobOutput
    read_job: ReadJob


OpenStay = Callable[[NextStay], StayOutput | None]
"""Returns None for a pool that was deleted meanwhile."""


async def follow_stays(
    first: StayOutput, open_stay: OpenStay, allowed: Callable[[], bool], shows: Shows
) -> AsyncIterator[bytes]:
    """Yield the frames of a job's lines in its pools, in their order, until it has ended.

    A job on its way to a pool has no row there yet: its stream waits for it.
    """
    stay = first
    while True:
        async for part in follow_lines(stay.output, allowed, stay.read_job, shows):
            yield part
        job = await stay.read_job()
        while job is None and allowed():
            yield ALIVE
            await asyncio.sleep(AGAIN_S)
            job = await stay.read_job()
        if job is None or job.next_stay is None or not allowed():
            return
        following = open_stay(job.next_stay)
        if following is None:
            yield end_frame(ENDED)
            return
        stay = following
