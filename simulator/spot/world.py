"""A pool of guaranteed and spot jobs on whole GPUs, event by event.

Guaranteed jobs evict spot jobs where they fit nowhere. An evicted job loses the work since its last
checkpoint, pays a restart, and waits again; the job that evicts pays a restart too.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from services.admission.core.spot.guarantees import GuaranteeLog
from services.admission.core.spot.quota import has_room
from services.placement.core.spot.places import SpotNodes, calm_after, places
from services.placement.core.spot.victims import (
    EvictionCosts,
    LeastCost,
    Preemption,
    RunningSpot,
    first_victims,
    preempt,
)
from simulator.spot.jobs import DAY_S, SpotTraceJob, organisation_shares
from simulator.spot.outcome import SpotOutcome
from simulator.spot.queue import SizedQueue, Waiting
from simulator.spot.quotas import STEP_S, SpotQuota, history_gpus
from simulator.spot.rules import SpotRules

CHECKPOINT_S = 3600
TICK, PERIOD, END = range(3)
"""Events of one instant in this order, and then submissions."""


def restart_s(gpus: int) -> float:
    """Return the published seconds that a restart takes."""
    return 40.0 if gpus <= 8 else 60.0


@dataclass(slots=True)
class Run:
    """A job on GPUs."""

    waiting: Waiting
    rows: list[int]
    gpus_by_row: tuple[tuple[int, int], ...]
    started_s: float
    end_s: float
    period_s: float
    """When its present guarantee period began."""

    @property
    def job(self) -> SpotTraceJob:
        return self.waiting.job


@dataclass(slots=True)
class SpotWorld:
    """One run of the rules over jobs that `spot_trace` made, until `end_s`."""

    jobs: list[SpotTraceJob]
    gpus: NDArray[np.int64]
    rules: SpotRules
    end_s: float
    nodes: SpotNodes = field(init=False)
    runs: dict[int, Run] = field(default_factory=dict)
    spot_runs: dict[int, list[int]] = field(default_factory=dict)
    """Numbers of spot jobs by row, in order of start."""
    log: GuaranteeLog = field(init=False)
    quota: SpotQuota = field(init=False)
    outcome: SpotOutcome = field(init=False)
    _events: list[tuple[float, int, int, float]] = field(default_factory=list)
    _guaranteed: SizedQueue = field(init=False)
    _spot: SizedQueue = field(init=False)
    _evicted: deque[tuple[float, int]] = field(default_factory=deque)
    """(s, row) of evictions in the last day."""
    _demand: NDArray[np.float64] = field(init=False)
    """Guaranteed GPUs in demand, running and waiting, by organisation."""
    _used: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """GPUs in use by guaranteed and by spot jobs."""
    _now_s: float = 0.0

    def __post_init__(self) -> None:
        capacity = int(self.gpus.sum())
        self.nodes = SpotNodes.of(self.gpus)
        self.log = GuaranteeLog(self.rules.settings.window_s)
        self.quota = SpotQuota(self.rules, capacity, history_gpus(self.jobs), self.log)
        self.outcome = SpotOutcome(capacity)
        self._guaranteed = SizedQueue(self.rules.guaranteed_order, self.rules.blocks)
        self._spot = SizedQueue(self.rules.spot_order, self.rules.blocks)
        self._demand = np.zeros(len(organisation_shares()))

    def run(self) -> SpotOutcome:
        """Run to the end and return what was measured from second 0 on."""
        later = self._submit_running()
        heappush(self._events, (0.0, TICK, 0, 0.0))
        while True:
            now_s = min(self._events[0][0], later[0].submit_s if later else math.inf, self.end_s)
            self.outcome.advance(now_s - self._now_s, self._used[False], self._used[True])
            self._now_s = now_s
            if now_s >= self.end_s:
                return self._closed()
            while self._events[0][0] <= now_s:
                self._handle(*heappop(self._events)[1:])
            while later and later[0].submit_s <= now_s:
                self._submit(later.popleft())
            self._guaranteed.start_all(self._start_guaranteed)
            self._spot.start_all(self._start_spot)

    def _submit_running(self) -> deque[SpotTraceJob]:
        """Queue the jobs that run at second 0 with their rest, and return those of later."""
        for job in self.jobs:
            rest_s = job.submit_s + job.duration_s
            if job.submit_s < 0 < rest_s:
                self._enqueue(job, rest_s, 0.0)
        return deque(job for job in self.jobs if job.submit_s >= 0)

    def _submit(self, job: SpotTraceJob) -> None:
        self._enqueue(job, job.duration_s, job.submit_s)

    def _enqueue(self, job: SpotTraceJob, remaining_s: float, since_s: float) -> None:
        waiting = Waiting(job.submit_s, job.number, job, remaining_s, since_s)
        if job.is_spot:
            self._spot.add(waiting)
        else:
            self._guaranteed.add(waiting)
            self._demand[job.organisation] += job.gpus

    def _handle(self, kind: int, number: int, started_s: float) -> None:
        if kind == TICK:
            self._tick()
            return
        run = self.runs.get(number)
        if run is None or run.started_s != started_s:
            return
        if kind == END:
            self._end(run)
            return
        self.log.note(self._now_s, run.job.guarantee_h, kept=True)
        run.period_s = self._now_s
        self._plan_period(run)

    def _tick(self) -> None:
        self._calm_nodes()
        oldest_s = self._spot.oldest_since_s()
        longest_s = 0.0 if oldest_s is None else self._now_s - oldest_s
        self.quota.renew(self._now_s, self._demand, longest_s)
        heappush(self._events, (self._now_s + STEP_S, TICK, 0, 0.0))

    def _calm_nodes(self) -> None:
        while self._evicted and self._evicted[0][0] < self._now_s - DAY_S:
            self._evicted.popleft()
        times_s = np.array([at_s for at_s, _ in self._evicted])
        rows = np.array([row for _, row in self._evicted], np.int64)
        number = len(self.gpus)
        last_hour = np.bincount(rows[times_s >= self._now_s - 3600], minlength=number)
        self.nodes.calm = calm_after(last_hour, np.bincount(rows, minlength=number))

    def _start_guaranteed(self, waiting: Waiting) -> bool:
        job, nodes, scores = waiting.job, self.nodes, self.rules.scores
        workers, gpus = job.workers, job.gpus_per_worker
        rows = places(nodes, workers, gpus, False, scores)
        if rows is not None:
            self._run(waiting, rows, 0.0)
            return True
        if int(((nodes.free + nodes.spot) // gpus).sum()) < workers:
            return False
        preemption = self._preemption(workers, gpus)
        if preemption is None:
            return False
        for name in preemption.victims:
            self._evict(self.runs[int(name)])
        self._run(waiting, preemption.rows, restart_s(job.gpus))
        return True

    def _preemption(self, workers: int, gpus: int) -> Preemption | None:
        running = {number: self._running(self.runs[number]) for number in self._spot_numbers()}
        by_row = {row: [running[own] for own in runs] for row, runs in self.spot_runs.items()}
        counts = self.log.all_of()
        pool_gpu_s = float(self.outcome.capacity) * max(self._now_s, 1.0)
        choose = (
            LeastCost(EvictionCosts(counts.failed, counts.kept, pool_gpu_s))
            if self.rules.least_cost
            else first_victims
        )
        return preempt(self.nodes, workers, gpus, by_row, self.rules.scores, choose)

    def _spot_numbers(self) -> set[int]:
        return {number for own in self.spot_runs.values() for number in own}

    def _running(self, run: Run) -> RunningSpot:
        lost_s = (self._now_s - run.started_s) % CHECKPOINT_S + restart_s(run.job.gpus)
        return RunningSpot(str(run.job.number), run.gpus_by_row, lost_s * run.job.gpus)

    def _start_spot(self, waiting: Waiting) -> bool:
        job = waiting.job
        if not has_room(self.quota.of(job.guarantee_h), self._used[True], job.gpus):
            return False
        rows = places(self.nodes, job.workers, job.gpus_per_worker, True, self.rules.scores)
        if rows is None:
            return False
        self._run(waiting, rows, 0.0)
        return True

    def _run(self, waiting: Waiting, rows: list[int], extra_s: float) -> None:
        job = waiting.job
        for row in rows:
            self.nodes.take(row, job.gpus_per_worker, job.is_spot)
        end_s = self._now_s + waiting.remaining_s + extra_s
        gpus = job.gpus_per_worker
        by_row = tuple((row, gpus * rows.count(row)) for row in dict.fromkeys(rows))
        run = Run(waiting, rows, by_row, self._now_s, end_s, self._now_s)
        self.runs[job.number] = run
        self._used[job.is_spot] += job.gpus
        self.outcome.note_wait(job, self._now_s - waiting.since_s)
        heappush(self._events, (end_s, END, job.number, self._now_s))
        if job.is_spot:
            for row, _ in by_row:
                self.spot_runs.setdefault(row, []).append(job.number)
            self._plan_period(run)

    def _plan_period(self, run: Run) -> None:
        kept_s = run.period_s + 3600.0 * run.job.guarantee_h
        if kept_s < run.end_s:
            heappush(self._events, (kept_s, PERIOD, run.job.number, run.started_s))

    def _end(self, run: Run) -> None:
        job = run.job
        self._release(run)
        self.outcome.note_end(job, self._now_s)
        if job.is_spot:
            self.log.note(self._now_s, job.guarantee_h, kept=True)
        else:
            self._demand[job.organisation] -= job.gpus

    def _evict(self, run: Run) -> None:
        job, ran_s = run.job, self._now_s - run.started_s
        self._release(run)
        self.log.note(self._now_s, job.guarantee_h, kept=False)
        lost_s = ran_s % CHECKPOINT_S
        remaining_s = run.waiting.remaining_s - (ran_s - lost_s) + restart_s(job.gpus)
        self.outcome.note_eviction(job, lost_s)
        self._evicted.extend((self._now_s, row) for row, _ in run.gpus_by_row)
        self._enqueue(job, remaining_s, self._now_s)

    def _release(self, run: Run) -> None:
        job = run.job
        del self.runs[job.number]
        self._used[job.is_spot] -= job.gpus
        for row in run.rows:
            self.nodes.take(row, -job.gpus_per_worker, job.is_spot)
        if job.is_spot:
            for row, _ in run.gpus_by_row:
                self.spot_runs[row].remove(job.number)

    def _closed(self) -> SpotOutcome:
        """Count the wait so far of the jobs that still wait."""
        for queue in (self._guaranteed, self._spot):
            for waiting in queue.waiting():
                self.outcome.note_wait(waiting.job, self._now_s - waiting.since_s)
        self.outcome.close(self.log, self.quota.factors)
        return self.outcome
