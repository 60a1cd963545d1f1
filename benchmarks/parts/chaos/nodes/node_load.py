"""A constant supply of short and long jobs for nodes, and the attempts that the ledger shows."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.parts.agents.node_pool import POOL
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.nodes.node import GPU_TYPE
from benchmarks.parts.chaos.nodes.ticks import WORKER, Worker
from shared.contracts.attempts import AllocationReleased, JobStarted
from shared.contracts.job_spec import Gang, JobSpec, Retry
from shared.contracts.placement import JobPlaced
from shared.ledger.reader import Accepted

SHORT_S = (0.3, 4.0)
"""Run times of seven of ten jobs."""
READ = frozenset({"job.placed.v1", "job.started.v1", "allocation.released.v1"})


@dataclass(slots=True)
class RecordedAttempt:
    """One attempt of a job as placement recorded it; times are `time.time()`."""

    job_id: str
    number: int
    placed_at: float
    nodes: dict[str, str]
    """Node by allocation."""
    is_started: bool = False
    ended_at: float = 0.0
    """When the first of its workers was released; 0 before."""
    ends: list[str] = field(default_factory=list)
    """How each of its workers ended."""
    released_at: dict[int, float] = field(default_factory=dict)
    """When the GPUs of a worker were released, by its rank."""


@dataclass(slots=True)
class NodeLoad(LoadedStack):
    """Jobs of one pool of nodes; their workers note when they hold a GPU."""

    lane: int = 0
    folder: str = ""
    """Where the workers note it."""
    long_s: float = 30.0
    """Run time of every tenth job, longer than any short outage."""
    is_uniform: bool = False
    """Whether all jobs are long, and have one worker with one GPU."""
    attempts: dict[tuple[str, int], RecordedAttempt] = field(default_factory=dict)

    def end_all(self) -> None:
        """Submit no more jobs, and let all that run end at their next tick."""
        self.ends_load.set()
        Path(f"{self.folder}.end").touch()

    def target(self) -> tuple[int, str]:
        return self.lane, POOL

    def next_spec(self) -> JobSpec:
        is_long = self.is_uniform or self.number % 10 == 0
        seconds = self.long_s if is_long else random.Random(self.number).uniform(*SHORT_S)
        gang = Gang(
            workers=2 if self.number % 4 == 0 else 1,
            gpus_per_worker=2 if self.number % 7 == 0 else 1,
        )
        return JobSpec(
            name="chaos",
            command=(sys.executable, "-ISc", WORKER, self.folder, f"{seconds:.2f}"),
            gang=Gang() if self.is_uniform else gang,
            gpu_types=(GPU_TYPE,),
            grace_s=1.0,
            retry=Retry(max_attempts=100, backoff_s=0.2, avoid_failed_node=False),
        )

    def note(self, accepted: Accepted) -> None:
        LoadedStack.note(self, accepted)
        if accepted.ledger != "placement":
            return
        at = accepted.record.at / 1000
        for fact in accepted.facts(consumed=READ):
            match fact.event:
                case JobPlaced() as event:
                    place = f"{accepted.partition}/{fact.seq}/{fact.index}"
                    nodes = {f"{place}/{a.rank}": a.node_id for a in event.allocations}
                    attempt = RecordedAttempt(event.job_id, event.attempt, at, nodes)
                    self.attempts[event.job_id, event.attempt] = attempt
                case JobStarted() as event:
                    self.attempts[event.job_id, event.attempt].is_started = True
                case AllocationReleased() as event:
                    attempt = self.attempts[event.job_id, event.attempt]
                    attempt.ended_at = attempt.ended_at or at
                    attempt.ends.append(end_of(event))
                    attempt.released_at[int(event.allocation_id.rpartition("/")[2])] = at

    def released_at_ms(self) -> dict[Worker, int]:
        """Return when the GPUs of each worker were released, by job, attempt and rank."""
        return {
            (job, number, rank): round(1000 * at)
            for (job, number), attempt in self.attempts.items()
            for rank, at in attempt.released_at.items()
        }

    def failed_attempts(self) -> list[RecordedAttempt]:
        """Return the attempts after which their jobs were tried again."""
        return [a for (job, n), a in self.attempts.items() if (job, n + 1) in self.attempts]


def end_of(event: AllocationReleased) -> str:
    """Return how a worker ended, in one word or two."""
    failure = f" {event.failure.reason}" if event.failure else ""
    return f"{event.reason}{failure}"
