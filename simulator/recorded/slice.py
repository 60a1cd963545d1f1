"""A part of a pool's past as a scenario: its jobs, nodes and settings, to be simulated again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shared.contracts.job_spec import JobSpec, Retry, Simulated
from shared.contracts.pools import PoolConfigured
from shared.contracts.terms import IN_EXECUTOR_LEASES
from simulator.engine.failures import NodeFailure, merge_failures
from simulator.engine.lane import LANE
from simulator.engine.options import TIME_SCALE
from simulator.engine.scenario import FIRST_MS, LEASE_S, START_TIMEOUT_S, NodeCordon, Scenario
from simulator.engine.sizing import window_of
from simulator.metrics.outcome import Bools
from simulator.recorded.job import NEVER, RecordedJob
from simulator.recorded.pool import RecordedPool
from simulator.workload.rows import WorkloadJob

LEAST_JOBS = 20
CARRIED_MS = 50
"""Clock ms by which a running job that is carried over arrives before the others."""

REPLAYED: dict[str, object] = {
    "backends": ("virtual",),
    "solver": "greedy",
    "shadows": (),
    "scheduler_shadow": None,
    "tenants": (),
    "rank_ms": 0,
    "settle_ms": 1,
    "round_ms": 1,
}
"""Settings that are the same in every replay, whatever the pool's are."""

Reason = Literal[
    "still running", "still waiting", "ended before it ran", "resized", "measurement of nodes"
]
"""Why a job that arrived in the time is counted in no figure."""
AS_LOAD = frozenset({"still running", "resized"})
"""Jobs that hold GPUs in the replay all the same: for as long as they have run so far."""


class InsufficientHistory(ValueError):
    """Raised if the ledger has too few facts of the pool."""


@dataclass(frozen=True, slots=True)
class RecordedSlice:
    """A scenario, the recorded jobs behind it in the same order, and what was left out."""

    past: RecordedPool
    scenario: Scenario
    jobs: tuple[RecordedJob, ...]
    left_out: dict[str, int]
    """Jobs that arrived in the time and are not counted, by reason."""
    carried: int
    """Jobs that waited or ran when the replayed time begins: load, with what was left of them."""
    mean_gpus: float
    """GPUs of the pool in the counted time, as a mean over it."""
    time_ms: tuple[int, int]
    """The counted time, wall ms of the ledger."""

    @property
    def counted(self) -> Bools:
        """Return [jobs], whether each job is one to count."""
        low, high = self.scenario.window_s
        return np.array(
            [
                low <= job.submit_s < high and index not in self.scenario.load_only
                for index, job in enumerate(self.scenario.jobs)
            ],
            np.bool_,
        )

    @property
    def cut_short(self) -> int:
        """Counted jobs that were cancelled: their run time is how long they ran."""
        return self._counted_where([job.ending == "cancelled" for job in self.jobs])

    @property
    def retried(self) -> int:
        """Counted jobs of which an attempt failed: the replay has their last attempt alone."""
        return self._counted_where([job.failed_attempts > 0 for job in self.jobs])

    def _counted_where(self, flags: Sequence[bool]) -> int:
        return int((self.counted & np.array(flags, np.bool_)).sum())


def whole_past(past: RecordedPool, last_share: float, most: int) -> RecordedSlice:
    """Return the last `most` jobs that ended, counted over the last part of their arrivals.

    Raises InsufficientHistory.
    """
    left_out = Counter[str](reason for job in past.jobs.values() if (reason := reason_of(job)))
    ended = [job for job in past.jobs.values() if reason_of(job) is None][-most:]
    if past.pool is None or len(ended) < LEAST_JOBS or not past.nodes.known:
        extent = f"ended jobs: {len(ended)}, nodes: {len(past.nodes.known)}"
        least = f"{LEAST_JOBS} jobs that ran to their end and one node are needed"
        raise InsufficientHistory(f"{past.name}: {extent}; {least}")
    return _slice(past, ended, ended[0].arrived_at, left_out, last_share)


def part_of_past(past: RecordedPool) -> RecordedSlice:
    """Return the time that was read, counted over its jobs. Raises InsufficientHistory."""
    arrived = [job for job in past.jobs.values() if past.from_ms <= job.arrived_at < past.to_ms]
    left_out = Counter[str](reason for job in arrived if (reason := reason_of(job)))
    chosen = [job for job in past.jobs.values() if reason_of(job) in (None, *AS_LOAD)]
    if past.pool is None or sum(left_out.values()) == len(arrived) or not past.nodes.known:
        extent = f"{len(arrived)} jobs arrived, of which {len(arrived) - left_out.total()} ended"
        advice = "take a longer or an earlier time"
        raise InsufficientHistory(f"{past.name}: {extent} with a known run time; {advice}")
    return _slice(past, chosen, past.from_ms, left_out, None)


def reason_of(job: RecordedJob) -> Reason | None:
    """Return why a job is not counted; None for one with a known run time."""
    if job.spec.validates:
        return "measurement of nodes"
    if job.resized:
        return "resized"
    if job.ending:
        return None if job.worked_ms > 0 else "ended before it ran"
    return "still running" if job.is_running else "still waiting"


def replay_settings(pool: PoolConfigured) -> PoolConfigured:
    """Return the pool's settings, but on one lane, with greedy rounds and without waiting.

    An unchanged queue is ranked every 5 s of the pool's clock, which makes runs fast.
    """
    scale = max(pool.time_scale, TIME_SCALE)
    times = {
        "time_scale": scale,
        "lease_s": LEASE_S / scale,
        "start_timeout_s": START_TIMEOUT_S / scale,
    }
    return pool.model_copy(update={"partition": LANE} | REPLAYED | times)


def _slice(
    past: RecordedPool,
    jobs: Sequence[RecordedJob],
    zero_ms: int,
    left_out: Counter[str],
    last_share: float | None,
) -> RecordedSlice:
    """Return the jobs as a scenario whose clock counts from `zero_ms`.

    Without `last_share` the jobs of [from_ms, to_ms) are counted.
    """
    assert past.pool is not None, "the caller has looked"
    settings = replay_settings(past.pool)
    clock = _Clock(past, zero_ms, settings.time_scale)
    in_order = sorted(jobs, key=lambda job: (clock.arrival_s(job), job.arrived_at, job.job_id))
    rows = [_row(past, clock, job) for job in in_order]
    is_whole = last_share is not None
    window_s = (
        window_of(rows, last_share)
        if last_share is not None
        else (clock.seconds(past.from_ms), clock.seconds(past.to_ms))
    )
    restarts_s = [_restart_s(past.pool, job) for job in in_order]
    scenario = Scenario(
        jobs=rows,
        nodes=past.nodes.inventory(past.name),
        pool=settings,
        window_s=window_s,
        walltime="trace",
        restart_s=float(np.median(restarts_s)),
        gpus_only=False,
        failures=merge_failures(_failures(past, clock, rows[0].submit_s)),
        specs=[
            _spec(job, row, restart_s)
            for job, row, restart_s in zip(in_order, rows, restarts_s, strict=True)
        ],
        cordons=_cordons(past, clock),
        load_only=frozenset(
            number
            for number, job in enumerate(in_order)
            if reason_of(job) in AS_LOAD or job.arrived_at < past.begin_ms
        ),
    )
    low, high = (clock.wall_ms(at_s) for at_s in window_s)
    carried = 0 if is_whole else sum(job.arrived_at < past.begin_ms for job in jobs)
    mean_gpus = past.nodes.mean_gpus(low, high)
    return RecordedSlice(
        past, scenario, tuple(in_order), dict(left_out), carried, mean_gpus, (low, high)
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """Wall ms of the ledger as cluster seconds of the scenario, and back."""

    past: RecordedPool
    zero_ms: int
    replay_scale: float

    def seconds(self, at: int) -> float:
        return (at - self.zero_ms) / 1000 * self.past.time_scale

    def wall_ms(self, at_s: float) -> int:
        return self.zero_ms + round(at_s * 1000 / self.past.time_scale)

    def arrival_s(self, job: RecordedJob) -> float:
        """Return when a job arrives in the replay: one that is carried over, at its beginning,
        first those that ran.
        """
        begin = self.past.begin_ms
        if job.arrived_at >= begin:
            return self.seconds(job.arrived_at)
        ran = job.done_ms > 0 or 0 <= job.first_placed_at < begin
        return self.seconds(begin) - (CARRIED_MS / 1000 * self.replay_scale if ran else 0.0)

    def whole(self, seconds: float) -> float:
        """Return cluster seconds as a whole number of the replay's ms, at least one."""
        return max(1, round(seconds * 1000 / self.replay_scale)) * self.replay_scale / 1000


def _row(past: RecordedPool, clock: _Clock, job: RecordedJob) -> WorkloadJob:
    spec = job.spec
    return WorkloadJob(
        job.job_id,
        job.tenant,
        spec.user,
        spec.name,
        clock.arrival_s(job),
        clock.whole(job.work_s(past.last_at, past.time_scale)),
        spec.gang.workers,
        spec.gang.gpus_per_worker,
        None,
        spec.gang.cpus_per_worker,
        spec.gang.mem_gib_per_worker,
        job.ending == "succeeded" if job.ending else None,
        spec.walltime_s,
        checkpoint_interval_s=spec.checkpoint_interval_s or 0.0,
    )


def _restart_s(pool: PoolConfigured, job: RecordedJob) -> float:
    """Return the cluster seconds of a start after a stop: measured, simulated, or assumed."""
    if job.restart_ms != NEVER:
        return job.restart_ms / 1000 * pool.time_scale
    return job.spec.simulated.restart_s if job.spec.simulated else pool.assumed_restart_s


def _spec(job: RecordedJob, row: WorkloadJob, restart_s: float) -> JobSpec:
    """Return the specification to submit: as recorded, with the run time that the job had."""
    simulated = Simulated(
        duration_s=row.duration_s, exit_code=int(job.ending == "failed"), restart_s=restart_s
    )
    return job.spec.model_copy(update={"simulated": simulated, "retry": Retry()})


def _failures(past: RecordedPool, clock: _Clock, first_s: float) -> Iterator[NodeFailure]:
    """Yield the times without a node; one is noticed as late as nodes in an executor are."""
    world_begins_s = first_s - FIRST_MS / 1000 * clock.replay_scale
    for node_id, from_at, to_at in past.nodes.absences():
        up_s = math.inf if to_at is None else clock.seconds(to_at)
        lost_s = -math.inf if from_at is None else clock.seconds(from_at)
        down_s = max(world_begins_s, lost_s - IN_EXECUTOR_LEASES * LEASE_S)
        if up_s > down_s:
            yield NodeFailure(node_id, down_s, up_s)


def _cordons(past: RecordedPool, clock: _Clock) -> list[NodeCordon]:
    begin = past.begin_ms or clock.zero_ms
    return [
        NodeCordon(clock.seconds(at), node_id, change)
        for at, node_id, change in past.nodes.cordons(begin)
        if change in ("cordoned", "draining", "open")
    ]
