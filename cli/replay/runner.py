"""Replays a workload into a running stack, with progress."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from cli.replay.feeder import Feeder, Timed
from cli.replay.progress import TERMINAL, ReplayProgress
from cli.replay.screen import screen, shown
from cli.replay.watch import follow
from infra.supervisor.running import RunningStack

TICK_S = 0.25


class Replayed(TypedDict):
    """Counts by phase, and the first jobs that did not end."""

    jobs: dict[str, int]
    missing: list[str]


@dataclass(frozen=True, slots=True)
class Run:
    """A workload and its stack; without `wait` the replay ends with the last submission."""

    stack: RunningStack
    due: Sequence[Timed]
    speed: float
    wait: bool
    timeout_s: float


def replayed(run: Run) -> Replayed:
    return asyncio.run(_replayed(run))


async def _replayed(run: Run) -> Replayed:
    progress = ReplayProgress({timed.submission.job_id for timed in run.due})
    feeder = Feeder(run.stack.connection("operator"), run.stack.partitions)
    watching = asyncio.ensure_future(
        follow(
            progress.see,
            run.stack.connection("verify"),
            run.stack.partitions,
            archive=run.stack.archive,
        )
    )
    feeding = asyncio.ensure_future(feeder.run(run.due))
    try:
        await _until_over(run, progress, feeder, watching, feeding)
    finally:
        for task in (feeding, watching):
            task.cancel()
        await asyncio.gather(feeding, watching, return_exceptions=True)
    counts = Counter(progress.phase(timed.submission.job_id) for timed in run.due)
    ended = {phase: counts[phase] for phase in TERMINAL}
    missing = progress.missing()[:20] if run.wait else []
    return Replayed(jobs={"submitted": feeder.sent, **ended}, missing=missing)


async def _until_over(
    run: Run,
    progress: ReplayProgress,
    feeder: Feeder,
    watching: asyncio.Future[None],
    feeding: asyncio.Future[None],
) -> None:
    ends_s = asyncio.get_running_loop().time() + run.timeout_s
    with screen(progress, run.speed) as live:
        while asyncio.get_running_loop().time() < ends_s:
            await asyncio.sleep(TICK_S)
            live.update(shown(progress, feeder.sent, len(progress.expected)))
            if watching.done():
                watching.result()
            if feeding.done():
                feeding.result()
                if not run.wait or not progress.missing():
                    return
