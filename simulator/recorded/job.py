"""One job as the ledger of placement has it: arrival, attempts, work and end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from shared.contracts.base import Event
from shared.contracts.checkpoint import restart_ms, speed
from shared.contracts.job_names import command_digest
from shared.contracts.job_spec import JobSpec, Spread
from shared.contracts.placement import Allocation

Ending = Literal["", "succeeded", "failed", "cancelled"]
"""How a job ended; empty: it had not when the ledger was read."""
NEVER = -1

PRIVATE: dict[str, object] = {"command": (), "env": {}, "image": "", "workdir": "", "bundle": ""}
"""Fields of a specification that no policy reads, and that would take most of the memory; run times
are learnt by a digest of command and image, which stands for the command.
"""
ALONE: dict[str, object] = {"depends_on": (), "elastic": None, "array_at_once": None}
"""Fields that a replay leaves out: a job arrives when it entered the queue, with its workers."""


@dataclass(slots=True)
class RecordedJob:
    """A job that entered the queue of the pool. Times are wall ms, GPUs devices.

    Its arrival is when placement enqueued it: what admission defers for a quota or for other jobs
    is no decision of a policy.
    """

    job_id: str
    tenant: str
    spec: JobSpec
    arrived_at: int
    first_placed_at: int = NEVER
    placed_at: int = NEVER
    started_at: int = NEVER
    """Start of the attempt that works now."""
    held_ms: int = 0
    """Time with GPUs of the attempts that are over."""
    kept_ms: float = 0.0
    """Work of stopped attempts that is in a checkpoint."""
    stops: int = 0
    restart_ms: int = NEVER
    """Measured time from a start after a stop until the work went on."""
    failed_attempts: int = 0
    resized: bool = False
    gpu_types: tuple[str, ...] = ()
    """Types of the last placement."""
    spread: Spread | None = None
    """Links between the nodes of the last placement; None: it was on one node."""
    ended_at: int = NEVER
    ending: Ending = ""
    worked_ms: float = 0.0
    """Work over all attempts, once it has ended."""
    done_ms: float = 0.0
    """Part of it that was done when the replayed time begins."""
    on_nodes: dict[str, float] = field(default_factory=dict)
    """GPUs of one worker, by node of the present attempt."""

    @classmethod
    def enqueued(cls, job_id: str, tenant: str, spec: JobSpec, at: int) -> RecordedJob:
        digest = command_digest(spec.command, spec.image)
        own = {"command": (digest,)} if digest else {}
        return cls(job_id, tenant, spec.model_copy(update=PRIVATE | ALONE | own), at)

    @property
    def is_running(self) -> bool:
        return self.placed_at != NEVER and self.ended_at == NEVER

    def worked_until(self, at: int, time_scale: float) -> float:
        """Return the wall ms of work of the present attempt; a restart comes first."""
        if self.started_at == NEVER:
            return 0.0
        cost = 0
        if self.stops:
            cost = restart_ms(self.spec, time_scale) if self.restart_ms < 0 else self.restart_ms
        return float(max(0, at - self.started_at - cost))

    def place(
        self,
        at: int,
        allocations: Iterable[Allocation],
        gpu_types: Iterable[str],
        spread: Spread | None = None,
    ) -> None:
        """Note the GPUs of an attempt."""
        self.placed_at = at
        if self.first_placed_at == NEVER:
            self.first_placed_at = at
        self.gpu_types, self.spread = tuple(gpu_types), spread
        self.on_nodes = {one.node_id: len(one.gpus) * one.gpu_milli / 1000 for one in allocations}

    def stop(self, at: int, lost_work_s: float, time_scale: float) -> None:
        """Note a stop, after which the work goes on from the last checkpoint."""
        if self.started_at != NEVER:
            lost_ms = lost_work_s * 1000 / time_scale
            self.kept_ms += max(0.0, self.worked_until(at, time_scale) - lost_ms)
        self.started_at = NEVER
        self.stops += 1

    def leave_gpus(self, at: int) -> None:
        """Note the end of an attempt."""
        if self.placed_at != NEVER:
            self.held_ms += at - self.placed_at
        self.placed_at = self.started_at = NEVER

    def end(self, at: int, ending: Ending, time_scale: float) -> None:
        """Note the end of the job; without work in its last attempt its run time is unknown."""
        worked_ms = self.worked_until(at, time_scale)
        self.worked_ms = self.kept_ms + worked_ms if worked_ms else 0.0
        self.leave_gpus(at)
        self.ended_at, self.ending = at, ending

    def work_s(self, until: int, time_scale: float) -> float:
        """Return the cluster seconds of work from the beginning of the replay on, as requested.

        That of a job that still runs counts until `until`. Where the job declares speeds of GPU
        types or links, this is its time on one node with GPUs of speed 1.
        """
        worked_ms = self.worked_ms
        if not self.ending:
            worked_ms = self.kept_ms + self.worked_until(until, time_scale)
        left_ms = max(0.0, worked_ms - self.done_ms)
        rate = speed(self.spec, self.spec.gang.workers, self.gpu_types, self.spread)
        return max(left_ms / 1000 * time_scale * rate, 0.001)


def subject_job(event: Event) -> str:
    """Return the job of an event of a job."""
    return str(getattr(event, "job_id"))  # noqa: B009
