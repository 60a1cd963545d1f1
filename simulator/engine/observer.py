"""Observation of a simulation's facts, as arrays of jobs and figures of the pool."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shared.contracts.admission import JobRejected
from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobRequeued,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import JobPlaced
from shared.ledger.decider import Fact
from simulator.engine.scenario import Scenario, duration_s, job_id
from simulator.engine.world import BEGIN
from simulator.metrics.outcome import HOUR_S, Floats, Ints, ScheduleOutcome

NEVER = -1


class GpuIntegrals:
    """GPU-ms held, by the hour, free, and free on partly used nodes, within the window."""

    def __init__(self, low_ms: float, high_ms: float, hour_ms: float) -> None:
        self._low, self._high, self._last, self._hour_ms = low_ms, high_ms, 0, hour_ms
        self._gpus: dict[str, float] = {}
        """GPUs of each node, 0 of a lost one."""
        self._in_use: dict[str, float] = {}
        self._used = self._free_now = self._partly_now = 0.0
        self.held: Floats = np.zeros(math.ceil((high_ms - low_ms) / hour_ms))
        self.free = self.partly = 0.0

    def advance(self, now: int) -> None:
        """Add the time since the last call."""
        if now == self._last:
            return
        low, high = max(self._last, self._low), min(now, self._high)
        self._last = now
        if high > low:
            self._hold(low, high)
            self.free += self._free_now * (high - low)
            self.partly += self._partly_now * (high - low)

    def offer(self, node_id: str, gpus: float) -> None:
        """Set the GPUs of a node."""
        self._in_use.setdefault(node_id, 0.0)
        self._count(node_id, -1)
        self._gpus[node_id] = gpus
        self._count(node_id, 1)

    def shift(self, node_id: str, gpus: float) -> None:
        """Allocate (+) or release (-) GPUs of a node."""
        self._count(node_id, -1)
        self._in_use[node_id] += gpus
        self._used += gpus
        self._count(node_id, 1)

    def _hold(self, low: float, high: float) -> None:
        """Add the GPUs in use between two times of the window to its hours."""
        first = int((low - self._low) / self._hour_ms)
        last = min(int((high - self._low) / self._hour_ms), len(self.held) - 1)
        for hour in range(first, last + 1):
            begins = self._low + hour * self._hour_ms
            span = min(high, begins + self._hour_ms) - max(low, begins)
            self.held[hour] += self._used * max(span, 0.0)

    def _count(self, node_id: str, sign: int) -> None:
        used = self._in_use[node_id]
        free = self._gpus.get(node_id, 0.0) - used
        if free > 0:
            self._free_now += sign * free
            if used > 0:
                self._partly_now += sign * free


class SimulationObserver:
    """Collects every fact of the placement ledger, and rejections of the admission ledger."""

    def __init__(
        self, scenario: Scenario, ids: Sequence[str] | None = None, begin: int = BEGIN
    ) -> None:
        """`ids` of the jobs and `begin`, the wall ms of the clock's zero, are by default those of
        the simulated world; a ledger of a running stack has others.
        """
        self._scenario = scenario
        self._begin = begin
        jobs = len(scenario.jobs)
        names = [job_id(n) for n in range(jobs)] if ids is None else ids
        self._index = {name: n for n, name in enumerate(names)}
        self._first = [NEVER] * jobs
        self._end = [NEVER] * jobs
        self._starts = [0] * jobs
        self._held = [0] * jobs
        self._placed = [0] * jobs
        self._each = [0.0] * jobs
        low, high = map(scenario.clock_ms, scenario.window_s)
        self._pool = GpuIntegrals(low, high, HOUR_S * 1000 / scenario.pool.time_scale)
        self._on: dict[type, Callable[[Any, int, Fact], None]] = {
            JobPlaced: self._on_placed,
            JobStarted: self._on_started,
            AllocationReleased: self._on_released,
            JobRequeued: self._on_off,
            JobAttemptFailed: self._on_off,
            JobSucceeded: self._on_ended,
            JobFailed: self._on_ended,
            JobCancelled: self._on_ended,
        }
        self.rejected: Counter[str] = Counter()
        self._unfit = np.zeros(jobs, np.bool_)
        self.over = 0
        """Jobs that have ended or were rejected."""
        self.moves = 0
        """Facts so far that changed allocations or runs."""

    def placement(self, fact: Fact) -> None:
        """Take a fact of the placement ledger."""
        event = fact.event
        react = self._on.get(type(event))
        if react is not None:
            self.moves += 1
            react(event, self._index[event.job_id], fact)  # type: ignore[attr-defined]
        elif type(event) is NodeJoined:
            self._pool.advance(fact.at - self._begin)
            self._pool.offer(event.node_id, float(event.gpus))
        elif type(event) is NodeLost:
            self._pool.advance(fact.at - self._begin)
            self._pool.offer(event.node_id, 0.0)

    def admission(self, fact: Fact) -> None:
        """Take a fact of the admission ledger."""
        if type(fact.event) is JobRejected:
            self.rejected[fact.event.reason] += 1
            self._unfit[self._index[fact.event.job_id]] = True
            self.over += 1

    def _on_placed(self, event: JobPlaced, job: int, fact: Fact) -> None:
        now = fact.at - self._begin
        self._pool.advance(now)
        self._placed[job] = now
        for lease in event.allocations:
            gpus = len(lease.gpus) * lease.gpu_milli / 1000
            self._each[job] = gpus
            self._pool.shift(lease.node_id, gpus)

    def _on_started(self, event: JobStarted, job: int, fact: Fact) -> None:
        self._starts[job] += 1
        if self._first[job] == NEVER:
            self._first[job] = fact.at - self._begin

    def _on_released(self, event: AllocationReleased, job: int, fact: Fact) -> None:
        self._pool.advance(fact.at - self._begin)
        self._pool.shift(event.node_id, -self._each[job])

    def _on_off(self, event: object, job: int, fact: Fact) -> None:
        self._held[job] += fact.at - self._begin - self._placed[job]
        self._placed[job] = fact.at - self._begin

    def _on_ended(self, event: object, job: int, fact: Fact) -> None:
        if self._first[job] != NEVER:
            self._on_off(event, job, fact)
        self._end[job] = fact.at - self._begin
        self.over += 1

    @property
    def start_ms(self) -> Ints:
        """First start of each job on the world's clock; -1: never."""
        return np.array(self._first, np.int64)

    @property
    def end_ms(self) -> Ints:
        return np.array(self._end, np.int64)

    def outcome(self, now: int) -> ScheduleOutcome:
        """Return the outcome as of `now` on the world's clock."""
        scenario, scale = self._scenario, self._scenario.pool.time_scale
        horizon = now - self._begin
        self._pool.advance(horizon)
        jobs = scenario.jobs
        held_s = np.array(self._held, np.float64) * scale / 1000
        work_s = np.array([duration_s(scenario, job) for job in jobs], np.float64)
        end_s = self._seconds(self.end_ms)
        lost_s = np.where(np.isnan(end_s), 0.0, np.maximum(held_s - work_s, 0.0))
        codes = {name: n for n, name in enumerate(sorted({job.tenant for job in jobs}))}
        return ScheduleOutcome(
            submit_s=self._seconds(
                np.array([scenario.clock_ms(job.submit_s) for job in jobs], np.int64)
            ),
            start_s=self._seconds(self.start_ms),
            end_s=end_s,
            duration_s=work_s,
            gpus=np.array([job.gpus for job in jobs], np.float64),
            tenant=np.array([codes[job.tenant] for job in jobs], np.int64),
            starts=np.array(self._starts, np.int64),
            held_s=held_s,
            lost_s=lost_s,
            fits=~self._unfit,
            capacity_gpus=scenario.capacity_gpus,
            window_s=scenario.window_s,
            held_by_hour=self._pool.held * scale / 1000,
            horizon_s=scenario.cluster_s(horizon),
            fragmentation=(
                self._pool.partly / self._pool.free if self._pool.free > 0 else float("nan")
            ),
        )

    def _seconds(self, clock_ms: Ints) -> Floats:
        scenario = self._scenario
        seconds = scenario.cluster_s(0) + clock_ms * scenario.pool.time_scale / 1000
        return np.where(clock_ms == NEVER, np.nan, seconds)
