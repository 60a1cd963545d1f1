"""A pool's own past, read from the priority ledger, as a workload to simulate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from services.executor.core.virtual.inventory import InventoryNode
from shared.bus.logs.log import Log
from shared.bus.logs.tail import LedgerTail
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import Finished, QueueChanged, QueueEntry
from shared.ledger.reader import Accepted
from simulator.engine.candidate import policy_of
from simulator.engine.lane import LANE
from simulator.engine.options import TIME_SCALE
from simulator.engine.scenario import LEASE_S, START_TIMEOUT_S, Scenario
from simulator.engine.sizing import PLENTY_CPUS, PLENTY_MEM_GIB, window_of
from simulator.workload.rows import WorkloadJob

LEDGER = "priority"
QUIET_S = 0.3
LEAST_JOBS = 20


class InsufficientHistory(ValueError):
    """Raised if the ledger has too few facts of the pool."""


@dataclass(slots=True)
class RecordedPool:
    """Settings, jobs and nodes of one pool, collected from a ledger record by record."""

    name: str
    pool: PoolConfigured | None = None
    entries: dict[str, QueueEntry] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    """GPUs of each node that ever joined."""
    policy_changed_at: int | None = None
    """Wall ms at which its policy was last changed; None: never."""

    def take(self, accepted: Accepted) -> None:
        """Add the facts of one accepted record."""
        for fact in accepted.facts():
            match fact.event:
                case PoolConfigured(pool=self.name) as pool:
                    if self.pool is not None and policy_of(self.pool) != policy_of(pool):
                        self.policy_changed_at = fact.at
                    self.pool = pool
                case QueueChanged(pool=self.name) as note:
                    self.entries |= {entry.job_id: entry for entry in note.entered}
                    self.finished |= {job.job_id: job for job in note.finished}
                    self.nodes |= {node.node_id: node.gpus for node in note.nodes if node.gpus}

    @property
    def unended(self) -> int:
        """Number of jobs with unknown run time: they are left out."""
        return len(self.entries.keys() - self.finished.keys())


async def read_pool(log: Log, partitions: int, pool: str) -> RecordedPool:
    """Read everything that the log holds now."""
    pool_facts = RecordedPool(pool)
    tail = LedgerTail(log, {LEDGER: range(partitions)})
    await tail.start()
    try:
        while True:
            batch = await tail.poll(QUIET_S)
            for accepted in batch:
                pool_facts.take(accepted)
            if not batch and tail.caught_up:
                return pool_facts
    finally:
        await tail.stop()


def build_scenario(past: RecordedPool, last_share: float, most: int) -> Scenario:
    """Build a scenario of the last `most` ended jobs on all nodes, evaluated over the last part.

    Raises InsufficientHistory. Jobs request GPUs alone; each keeps its checkpoint interval, and a
    restart takes the median of what they declared.
    """
    if past.pool is None:
        raise InsufficientHistory(f"pool: {past.name!r}, must be one that the ledger knows")
    jobs = jobs_of(past, past.pool.time_scale)[-most:]
    if len(jobs) < LEAST_JOBS or not past.nodes:
        extent = f"{len(jobs)} jobs that ran to their end on {len(past.nodes)} nodes"
        raise InsufficientHistory(f"{past.name}: {extent}, must be at least {LEAST_JOBS} and 1")
    entries = [past.entries[job.job_key] for job in jobs]
    return Scenario(
        jobs=jobs,
        nodes=nodes_of(past),
        pool=replay_settings(past.pool),
        window_s=window_of(jobs, last_share),
        walltime="trace",
        restart_s=float(np.median([entry.restart_s for entry in entries])),
    )


def jobs_of(past: RecordedPool, time_scale: float) -> list[WorkloadJob]:
    """Return jobs by submission, in cluster seconds from the first; those without GPUs are left
    out.
    """
    ended = [past.entries[name] for name in past.finished if name in past.entries]
    ended = sorted(
        (entry for entry in ended if entry.gpus),
        key=lambda entry: (entry.submitted_at, entry.job_id),
    )
    return [
        WorkloadJob(
            entry.job_id,
            entry.tenant,
            entry.user,
            entry.name,
            (entry.submitted_at - ended[0].submitted_at) / 1000 * time_scale,
            max(past.finished[entry.job_id].ran_s, 0.001),
            entry.workers,
            entry.gpus / entry.workers,
            None,
            0.0,
            0.0,
            past.finished[entry.job_id].succeeded,
            entry.walltime_s,
            checkpoint_interval_s=entry.checkpoint_interval_s,
        )
        for entry in ended
    ]


def nodes_of(past: RecordedPool) -> Mapping[str, InventoryNode]:
    """Return a virtual node for each recorded one."""
    return {
        name: InventoryNode(
            name, past.name, "virtual", "gpu", gpus, PLENTY_CPUS, PLENTY_MEM_GIB, "r0", ()
        )
        for name, gpus in sorted(past.nodes.items())
    }


def replay_settings(pool: PoolConfigured) -> PoolConfigured:
    """Return the pool's settings, but on one lane, with greedy rounds and without waiting.

    An unchanged queue is ranked every 5 s of the pool's clock, which makes runs fast.
    """
    scale = max(pool.time_scale, TIME_SCALE)
    return pool.model_copy(
        update={
            "partition": LANE,
            "backends": ("virtual",),
            "solver": "greedy",
            "shadows": (),
            "tenants": (),
            "rank_ms": 0,
            "settle_ms": 1,
            "round_ms": 1,
            "time_scale": scale,
            "lease_s": LEASE_S / scale,
            "start_timeout_s": START_TIMEOUT_S / scale,
        }
    )
