"""One part of a trace under a scheduler of the seam, at the costs of the kernel."""

from __future__ import annotations

import numpy as np

from benchmarks.parts.league.days import predicted
from benchmarks.parts.league.entrants import Entrant
from benchmarks.parts.policies.continuous import Replay
from shared.performance.restarts import RestartCosts
from shared.schedulers.registry import scheduler_of
from shared.schedulers.view import TypedNode
from simulator.metrics.outcome import Floats, ScheduleOutcome
from simulator.rounds.job import RoundsJob
from simulator.rounds.outcome import RoundsOutcome
from simulator.rounds.saved_work import CheckpointedWork, alone_on, rests_by_bin
from simulator.rounds.world import RoundsOptions, RoundsWorld

ROUND_S = 360.0
SEED = 0
HORIZON = 2.0
"""Time of a run over that of first come, first served, after which it counts as one without end."""
GPU_TYPE = "gpu"


def play_in_rounds(replay: Replay, entrant: Entrant, like: ScheduleOutcome) -> ScheduleOutcome:
    """Return the outcome of all jobs that fit, on the clock of the replay.

    `like` is an outcome of the same jobs under first come, first served: history learns its ends.
    A job that has no end within the horizon has none in the outcome.
    """
    jobs = rounds_jobs(replay, like, has_history=entrant.runtime_source == "history")
    nodes = [
        TypedNode(f"n{number:04d}", GPU_TYPE, gpus)
        for number, gpus in enumerate(replay.sizes.tolist())
    ]
    options = RoundsOptions(
        ROUND_S,
        SEED,
        RestartCosts(replay.costs.restart_s),
        first_start_is_free=True,
        horizon_s=HORIZON * (like.horizon_s - float(like.submit_s[0])),
    )
    world = RoundsWorld(jobs, nodes, scheduler_of(entrant.scheduler), options)
    done = world.run()
    assert not done.refusals, f"{done.refusals[0]}"
    return schedule_outcome(replay, like, done)


def rounds_jobs(replay: Replay, like: ScheduleOutcome, has_history: bool) -> list[RoundsJob]:
    """Return the jobs that fit; ids are their numbers in the order of the replay."""
    work, costs = replay.work, replay.costs
    first_ms = int(work.submit_ms[0])
    rests = rests_by_bin(predicted(replay, like)).tolist() if has_history else None
    submit_s = ((work.submit_ms - first_ms) / 1000.0).tolist()
    seconds = (work.duration_ms / 1000.0).tolist()
    return [
        RoundsJob(
            job_id(number),
            submit_s[number],
            gang,
            CheckpointedWork(
                seconds[number],
                alone_on(GPU_TYPE, gang),
                checkpoint_s=costs.checkpoint_s,
                rests_s=() if rests is None else rests[number],
            ),
        )
        for number, gang in enumerate(work.gang.tolist())
        if like.fits[number]
    ]


def job_id(number: int) -> str:
    return f"{number:06d}"


def schedule_outcome(replay: Replay, like: ScheduleOutcome, done: RoundsOutcome) -> ScheduleOutcome:
    """Return the outcome in the order of the replay's jobs; the use of each hour is not known."""
    by_id = {job.job_id: job for job in done.jobs}
    rows = [by_id.get(job_id(number)) for number in range(len(replay.work))]
    first_s = int(replay.work.submit_ms[0]) / 1000.0
    held_s = np.array([0.0 if row is None else row.held_gpu_s for row in rows]) / like.gpus
    return ScheduleOutcome(
        submit_s=like.submit_s,
        start_s=times([None if row is None else row.first_start_s for row in rows], first_s),
        end_s=times([None if row is None else row.end_s for row in rows], first_s),
        duration_s=like.duration_s,
        gpus=like.gpus,
        tenant=like.tenant,
        starts=np.array([0 if row is None else row.restarts + 1 for row in rows], np.int64),
        held_s=held_s,
        lost_s=np.where(like.fits, np.maximum(held_s - like.duration_s, 0.0), 0.0),
        fits=like.fits,
        capacity_gpus=like.capacity_gpus,
        window_s=like.window_s,
        held_by_hour=np.zeros(0),
        horizon_s=done.end_s + first_s,
    )


def times(moments: list[float | None], first_s: float) -> Floats:
    return np.array([np.nan if at is None else at + first_s for at in moments], np.float64)
