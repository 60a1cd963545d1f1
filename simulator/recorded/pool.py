"""A pool's recorded past, folded record by record from the ledger of placement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from sys import maxsize
from typing import Any

from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobCheckpointed,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobProgressed,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.checkpoint import spread_of
from shared.contracts.nodes import NodeCordoned, NodeJoined, NodeLost, NodeUncordoned
from shared.contracts.placement import JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.ledger.decider import Fact
from shared.ledger.reader import Accepted
from simulator.engine.candidate import policy_of
from simulator.engine.observer import GpuIntegrals
from simulator.metrics.outcome import HOUR_S
from simulator.recorded.job import Ending, RecordedJob, subject_job
from simulator.recorded.nodes import RecordedNodes, usable_gpus

LEDGER = "placement"
"""The ledger that has the whole story of a pool."""
MOST_JOBS = 20_000
"""Jobs that one replay holds, by default: about 4 kB one."""
ALWAYS = maxsize
"""A moment after every record."""
ENDINGS: dict[type[Event], Ending] = {
    JobSucceeded: "succeeded",
    JobFailed: "failed",
    JobCancelled: "cancelled",
}


class TooManyJobs(ValueError):
    """Raised if more jobs arrived in the time than may be held."""


@dataclass(slots=True)
class RecordedPool:
    """Settings, jobs and nodes of one pool within [begin_ms, to_ms), wall ms.

    A job that ended before is dropped at its end. Jobs that arrived in [from_ms, to_ms) are those
    to count. While one of them waits, jobs that arrive after `to_ms` are kept as well, since they
    compete with it. With `only_last` the first ended jobs make room for later ones; else more than
    `most` raise TooManyJobs.
    """

    name: str
    begin_ms: int = 0
    from_ms: int = 0
    to_ms: int = ALWAYS
    most: int = MOST_JOBS
    only_last: bool = False
    pool: PoolConfigured | None = None
    """The last settings before `to_ms`."""
    policy_changed_at: int | None = None
    """Wall ms at which its policy was last changed; None: never."""
    policy_changes: int = 0
    """Changes of the policy in [from_ms, to_ms)."""
    nodes: RecordedNodes = field(default_factory=RecordedNodes)
    jobs: dict[str, RecordedJob] = field(default_factory=dict)
    last_at: int = 0
    """Wall ms of the last record that was read."""
    held: GpuIntegrals | None = None
    """GPU time in [from_ms, to_ms), by the hour of the cluster."""
    _waiting: set[str] = field(default_factory=set)
    _open: int = 0
    _has_begun: bool = False

    @property
    def time_scale(self) -> float:
        return self.pool.time_scale if self.pool else 1.0

    @property
    def is_complete(self) -> bool:
        """Return whether no later record changes anything: the time is over, every job ended."""
        return self.last_at >= self.to_ms and not self._open

    def take(self, accepted: Accepted) -> None:
        """Add the facts of one accepted record of the pool's lane."""
        self.last_at = max(self.last_at, accepted.record.at)
        for fact in accepted.facts(consumed=CONSUMED):
            self.take_fact(fact)

    def take_fact(self, fact: Fact) -> None:
        """Add one fact."""
        self.last_at = max(self.last_at, fact.at)
        if not self._has_begun and fact.at >= self.begin_ms:
            self._begin()
        event = fact.event
        if isinstance(event, NodeJoined | NodeLost | NodeCordoned | NodeUncordoned):
            self._take_node(event, fact.at)
        elif isinstance(event, PoolConfigured):
            self._configure(event, fact.at)
        elif isinstance(event, JobEnqueued):
            self._enqueue(event, fact.at)
        elif (react := ON_JOB.get(type(event))) and (job := self.jobs.get(subject_job(event))):
            react(self, job, event, fact.at)

    def _begin(self) -> None:
        """Note the work that open jobs have done when the replayed time begins."""
        self._has_begun = True
        for job in self.jobs.values():
            job.done_ms = job.kept_ms + job.worked_until(self.begin_ms, self.time_scale)

    def _take_node(self, event: Any, at: int) -> None:
        self.nodes.take(event, at)
        if self.held and isinstance(event, NodeJoined | NodeLost):
            self.held.advance(at)
            gpus = float(usable_gpus(event)) if isinstance(event, NodeJoined) else 0.0
            self.held.offer(event.node_id, gpus)

    def _configure(self, event: PoolConfigured, at: int) -> None:
        if event.pool != self.name or at >= self.to_ms:
            return
        if self.pool is not None and policy_of(self.pool) != policy_of(event):
            self.policy_changed_at = at
            self.policy_changes += at >= self.from_ms
        self.pool = event
        if self.held is None and self.to_ms != ALWAYS:
            hour_ms = HOUR_S * 1000 / event.time_scale
            self.held = GpuIntegrals(self.from_ms, self.to_ms, hour_ms)

    def _enqueue(self, event: JobEnqueued, at: int) -> None:
        if event.job_id in self.jobs or event.attempt > 1:
            return
        if at >= self.to_ms and not self._waiting:
            return
        job = RecordedJob.enqueued(event.job_id, event.tenant, event.spec, at)
        self.jobs[event.job_id] = job
        self._open += 1
        if self.from_ms <= at < self.to_ms:
            self._waiting.add(event.job_id)
        if len(self.jobs) > (2 * self.most if self.only_last else self.most):
            self._make_room()

    def _make_room(self) -> None:
        if not self.only_last:
            raise TooManyJobs(
                f"{self.name}: more than {self.most} jobs in this time; take a shorter one"
            )
        ended = [name for name, job in self.jobs.items() if job.ending]
        for name in ended[: len(self.jobs) - self.most]:
            del self.jobs[name]

    def _place(self, job: RecordedJob, event: JobPlaced, at: int) -> None:
        self._waiting.discard(job.job_id)
        known = [one.node_id for one in event.allocations if one.node_id in self.nodes.known]
        racks = {name: self.nodes.known[name].rack for name in known}
        spread = spread_of((one.node_id for one in event.allocations), racks)
        job.place(at, event.allocations, self.nodes.types_of(known), spread)
        if self.held:
            self.held.advance(at)
            for one in event.allocations:
                self.held.shift(one.node_id, len(one.gpus) * one.gpu_milli / 1000)

    def _release(self, job: RecordedJob, event: AllocationReleased, at: int) -> None:
        if self.held:
            self.held.advance(at)
            self.held.shift(event.node_id, -job.on_nodes.get(event.node_id, 0.0))

    def _start(self, job: RecordedJob, event: JobStarted, at: int) -> None:
        job.started_at = at

    def _stop(self, job: RecordedJob, event: Any, at: int) -> None:
        job.resized |= isinstance(event, JobResized)
        job.stop(at, event.lost_work_s, self.time_scale)

    def _leave(self, job: RecordedJob, event: Any, at: int) -> None:
        job.failed_attempts += isinstance(event, JobAttemptFailed)
        job.leave_gpus(at)

    def _report(self, job: RecordedJob, event: Any, at: int) -> None:
        if event.restart_ms is not None and job.stops:
            job.restart_ms = event.restart_ms

    def _end(self, job: RecordedJob, event: Any, at: int) -> None:
        self._waiting.discard(job.job_id)
        self._open -= 1
        job.end(at, ENDINGS[type(event)], self.time_scale)
        if at < self.begin_ms:
            del self.jobs[job.job_id]


OnJob = Callable[[RecordedPool, RecordedJob, Any, int], None]
ON_JOB: dict[type[Event], OnJob] = {
    JobPlaced: RecordedPool._place,
    JobStarted: RecordedPool._start,
    JobPreempted: RecordedPool._stop,
    JobMigrated: RecordedPool._stop,
    JobResized: RecordedPool._stop,
    JobRequeued: RecordedPool._leave,
    JobAttemptFailed: RecordedPool._leave,
    JobCheckpointed: RecordedPool._report,
    JobProgressed: RecordedPool._report,
    AllocationReleased: RecordedPool._release,
    **dict.fromkeys(ENDINGS, RecordedPool._end),
}
KINDS: tuple[type[Event], ...] = (
    *ON_JOB,
    JobEnqueued,
    NodeJoined,
    NodeLost,
    NodeCordoned,
    NodeUncordoned,
    PoolConfigured,
)
CONSUMED = frozenset(kind.TYPE for kind in KINDS)
