"""Virtual workers: they take time and nothing else. The caller passes the clock."""

from __future__ import annotations

import hashlib
import heapq
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import NormalDist

from services.executor.core.virtual.effects import WorkerEnded, WorkerSpec
from services.executor.core.virtual.injected import COMMUNICATION_SHARE, NO_SLOWDOWN, NodeSlowdown
from services.executor.core.virtual.validation import RUNS_S, measurements
from shared.contracts.checkpoint import speed
from shared.contracts.job_spec import JobSpec, Simulated
from shared.contracts.reports import IterationTimes

MEDIAN_S = 600.0
SIGMA = 1.0
STOPPED = 143
SAMPLES = 16
"""Limit of iteration times of one worker in one report: the newest are kept."""
SAMPLED_WORKERS = 1000
"""Limit of workers in one report; the others come first in the next."""
JITTER = 0.02

_normal = NormalDist()
_plain = Simulated()


def work_s(job_id: str, spec: JobSpec) -> float:
    """Return cluster seconds of work: from the spec, or log-normal (median 600, sigma 1) by id,
    that of its first pool for a job that was transferred.
    """
    if spec.simulated is not None and spec.simulated.duration_s is not None:
        return spec.simulated.duration_s
    first_id = spec.transferred.first_job_id if spec.transferred else job_id
    fraction = int.from_bytes(hashlib.sha256(first_id.encode()).digest()[:8]) / 2**64
    return float(MEDIAN_S * 2.718281828459045 ** (SIGMA * _normal.inv_cdf(max(fraction, 1e-9))))


@dataclass(slots=True)
class VirtualRun:
    """A running virtual worker; times on the caller's clock, in wall seconds."""

    spec: WorkerSpec
    started_s: float
    due_s: float
    scale: float
    slowdown: float
    """Multiple of the time of an iteration, by the slowest of its gang's nodes and links."""
    since_s: float
    """When its present speed began; before that its work rests, as during a restart."""
    limit_s: float = math.inf
    """End of its walltime."""
    done: float = 0.0
    """Iterations by then."""
    reported: int = 0

    @property
    def ends_s(self) -> float:
        """Return the time of its end: its work is done, or its walltime is over."""
        return min(self.due_s, self.limit_s)

    def iterations_at(self, now_s: float) -> float:
        ran_s = max(0.0, now_s - self.since_s) * self.scale
        return self.done + ran_s / (_base_s(self.spec) * self.slowdown)

    def change_speed(self, slowdown: float, now_s: float) -> None:
        """Let what is left take as long as at the new speed."""
        from_s = max(now_s, self.since_s)
        self.done = self.iterations_at(from_s)
        self.due_s = from_s + (self.due_s - from_s) * slowdown / self.slowdown
        self.since_s, self.slowdown = from_s, slowdown


class VirtualWorkers:
    """Running workers by their ends. `slow` maps a node to the slowdown of its workers.

    `ends_at_walltime`: a start that needs longer than the walltime of its job ends then, as on a
    machine. In a simulation the walltime is an estimate alone: jobs of a trace run as they did.
    """

    def __init__(self, slow: Mapping[str, float], *, ends_at_walltime: bool = False) -> None:
        self._configured = slow
        self._ends_at_walltime = ends_at_walltime
        self._injected: Mapping[str, NodeSlowdown] = {}
        self._prepared: dict[str, WorkerSpec] = {}
        self._running: dict[str, VirtualRun] = {}
        """Those that reported longest ago come first."""
        self._heap: list[tuple[float, str]] = []

    def inject(self, slowdowns: Mapping[str, NodeSlowdown], now_s: float) -> None:
        """Slow the workers on these nodes down, and end earlier injections on all others."""
        if slowdowns == self._injected:
            return
        self._injected = dict(slowdowns)
        for allocation_id, running in self._running.items():
            slowdown = self._gang_slowdown(running.spec)
            if slowdown != running.slowdown:
                running.change_speed(slowdown, now_s)
                heapq.heappush(self._heap, (running.ends_s, allocation_id))
        self._compact()

    def _slowdowns(self, node_id: str) -> NodeSlowdown:
        injected = self._injected.get(node_id, NO_SLOWDOWN)
        return NodeSlowdown(self._configured.get(node_id, 1.0) * injected.work, injected.link)

    def _node_slowdown(self, node_id: str) -> float:
        """Return the slowdown of own work on a node."""
        return self._slowdowns(node_id).work

    def _gang_slowdown(self, spec: WorkerSpec) -> float:
        """Return the slowdown of the gang: each iteration waits for the slowest, and for links."""
        links = max(self._injected.get(node, NO_SLOWDOWN).link for node in spec.gang_nodes)
        waits = COMMUNICATION_SHARE * (links - 1) if spec.world_size > 1 else 0.0
        return max(map(self._node_slowdown, spec.gang_nodes)) + waits

    def prepare(self, spec: WorkerSpec) -> None:
        self._prepared[spec.allocation_id] = spec

    def start(self, allocation_id: str, now_s: float, scale: float) -> None:
        """Start a worker; all of a gang end together, as each iteration waits for the slowest.

        A restart takes as long on any node. Workers of an elastic gang share its work evenly, and
        a gang is as fast as the slowest of its GPU types (`gpu_speeds` of the job) and its links
        (`spread_speeds`) allow.
        """
        spec = self._prepared.pop(allocation_id)
        slowdown = self._gang_slowdown(spec)
        work = max(0.0, work_s(spec.job_id, spec.job_spec) - spec.done_s)
        rate = speed(spec.job_spec, spec.world_size, spec.gpu_types, spec.spread)
        left_s = work * slowdown / scale / rate
        if spec.job_spec.validates:
            left_s = RUNS_S
        since_s = now_s + spec.restart_s / scale
        limit_s, walltime_s = math.inf, spec.job_spec.walltime_s
        if self._ends_at_walltime and walltime_s is not None:
            limit_s = now_s + walltime_s / scale
        running = VirtualRun(spec, now_s, since_s + left_s, scale, slowdown, since_s, limit_s)
        self._running[allocation_id] = running
        heapq.heappush(self._heap, (running.ends_s, allocation_id))

    def stop(self, allocation_id: str, now_s: float) -> WorkerEnded:
        self._prepared.pop(allocation_id, None)
        running = self._running.pop(allocation_id, None)
        self._compact()
        if running is None:
            return WorkerEnded(allocation_id, None)
        return WorkerEnded(allocation_id, STOPPED, round((now_s - running.started_s) * 1000))

    def _compact(self) -> None:
        """Remove ends of stopped workers, which may lie years ahead, before they pile up."""
        if len(self._heap) > 2 * len(self._running) + 1000:
            self._heap = [(r.ends_s, name) for name, r in self._running.items()]
            heapq.heapify(self._heap)

    def take_due(self, now_s: float) -> list[WorkerEnded]:
        """Remove and return the workers whose time is over."""
        ended: list[WorkerEnded] = []
        while self._heap and self._heap[0][0] <= now_s:
            ends_s, allocation_id = heapq.heappop(self._heap)
            running = self._running.get(allocation_id)
            if running is None or running.ends_s != ends_s:
                continue
            del self._running[allocation_id]
            ended.append(_end_of(running, round((ends_s - running.started_s) * 1000)))
        return ended

    @property
    def next_due_s(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def due_s(self, allocation_id: str) -> float | None:
        """Return when a worker ends, on the caller's clock; None: it does not run."""
        running = self._running.get(allocation_id)
        return None if running is None else running.ends_s

    def iterations(self, now_s: float) -> list[IterationTimes]:
        """Return new iteration times of workers; those over the limit come first next time."""
        chosen = list(islice(self._running, SAMPLED_WORKERS))
        samples: list[IterationTimes] = []
        for allocation_id in chosen:
            running = self._running[allocation_id] = self._running.pop(allocation_id)
            if running.spec.job_spec.validates:
                samples.append(self._measured(running.spec))
                continue
            steps = self._new_steps(running, now_s)
            if steps:
                samples.append(self._sample(running, steps))
        return samples

    def _new_steps(self, running: VirtualRun, now_s: float) -> range:
        count = int(running.iterations_at(now_s))
        first = max(running.reported, count - SAMPLES)
        running.reported = count
        return range(first, count)

    def _measured(self, spec: WorkerSpec) -> IterationTimes:
        """Return the same measurements at each report, as one may be lost."""
        times_s = measurements(spec, self._slowdowns, _jitter)
        return IterationTimes(
            job_id=spec.job_id,
            allocation_id=spec.allocation_id,
            node_id=spec.node_id,
            rank=spec.rank,
            iteration_s=tuple(times_s.values()),
            steps=tuple(times_s),
        )

    def _sample(self, running: VirtualRun, steps: range) -> IterationTimes:
        """Return the own work of a worker, and its wait for the slowest of the gang."""
        spec, base_s = running.spec, _base_s(running.spec)
        worker_base_s = base_s * self._node_slowdown(spec.node_id)
        gang_base_s = base_s * running.slowdown
        own_s = [worker_base_s * _jitter(spec.allocation_id, step) for step in steps]
        gang_s = [gang_base_s * _jitter(spec.job_id, step) for step in steps]
        whole_s = [max(own, gang) for own, gang in zip(own_s, gang_s, strict=True)]
        return IterationTimes(
            job_id=spec.job_id,
            allocation_id=spec.allocation_id,
            node_id=spec.node_id,
            rank=spec.rank,
            series=spec.series,
            iteration_s=tuple(whole_s),
            own_s=tuple(own_s),
            wait_s=tuple(whole - own for whole, own in zip(whole_s, own_s, strict=True)),
            steps=tuple(steps),
        )


def _end_of(running: VirtualRun, ran_ms: int) -> WorkerEnded:
    """Return the end of a worker, by its work or its walltime; a tie is that of the work."""
    spec = running.spec
    if running.limit_s < running.due_s:
        detail = f"the walltime of {spec.job_spec.walltime_s:g} s is over"
        return WorkerEnded(spec.allocation_id, STOPPED, ran_ms, "walltime", detail)
    code = (spec.job_spec.simulated or _plain).exit_code
    return WorkerEnded(spec.allocation_id, code, ran_ms)


def _base_s(spec: WorkerSpec) -> float:
    return (spec.job_spec.simulated or _plain).iteration_s


def _jitter(name: str, iteration: int) -> float:
    fraction = zlib.crc32(f"{name}#{iteration}".encode()) / 2**32
    return 1 + JITTER * (fraction - 0.5)
