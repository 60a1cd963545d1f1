"""Progress of submitted jobs: a fold over the ledgers of admission and placement."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from shared.contracts.admission import JobAdmitted, JobDeferred, JobReadmitted, JobRejected
from shared.contracts.attempts import (
    AllocationReleased,
    JobAttemptFailed,
    JobCancelled,
    JobFailed,
    JobMigrated,
    JobPreempted,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import Event
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import JobEnqueued, JobHeld, JobPlaced
from shared.ledger.decider import Fact

DECISIONS = 8
RECENT_MS = 5000
TERMINAL = ("succeeded", "failed", "cancelled", "rejected")


@dataclass(slots=True)
class ReplayProgress:
    """Two ledgers have no order between them: placement's phase of a job takes precedence."""

    expected: set[str] = field(default_factory=set)
    by_ledger: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"admission": {}, "placement": {}}
    )
    nodes: dict[str, NodeJoined] = field(default_factory=dict)
    held_milli: dict[str, tuple[str, int]] = field(default_factory=dict)
    used_milli: Counter[str] = field(default_factory=Counter)
    waits_ms: list[int] = field(default_factory=list)
    first_placed_at: int = 0
    last_end_at: int = 0
    placed_at: deque[int] = field(default_factory=deque)
    decisions: deque[str] = field(default_factory=lambda: deque(maxlen=DECISIONS))

    def see(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            self._see(fact)

    def _see(self, fact: Fact) -> None:
        match fact.event:
            case NodeJoined() as node:
                self.nodes[node.node_id] = node
            case NodeLost() as lost:
                self.nodes.pop(lost.node_id, None)
            case JobPlaced() as placed:
                self._place(fact, placed)
            case AllocationReleased() as released:
                gpu_type, milli = self.held_milli.pop(released.allocation_id, ("", 0))
                self.used_milli[gpu_type] -= milli
            case event:
                self._phase(fact, event)

    def _phase(self, fact: Fact, event: Event) -> None:
        phase = phase_after(event)
        if phase is None:
            return
        self.by_ledger[fact.ledger][event.subject] = phase
        if phase in TERMINAL:
            self.last_end_at = max(self.last_end_at, fact.at)
        self.decisions.append(decision_line(event, phase))

    def _place(self, fact: Fact, placed: JobPlaced) -> None:
        self.by_ledger["placement"][placed.job_id] = "placed"
        self.first_placed_at = self.first_placed_at or fact.at
        self.waits_ms.append(placed.waited_ms)
        self.placed_at.append(fact.at)
        for allocation in placed.allocations:
            milli = allocation.gpu_milli * len(allocation.gpus)
            gpu_type = self._gpu_type(allocation.node_id)
            self.held_milli[f"{fact.place}/{allocation.rank}"] = (gpu_type, milli)
            self.used_milli[gpu_type] += milli
        self.decisions.append(decision_line(placed, "placed"))

    def _gpu_type(self, node_id: str) -> str:
        node = self.nodes.get(node_id)
        return node.gpu_type if node else ""

    def utilisation(self) -> dict[str, tuple[float, float]]:
        """Return used and offered GPUs by type."""
        offered: Counter[str] = Counter()
        for node in self.nodes.values():
            offered[node.gpu_type] += node.gpus
        return {name: (self.used_milli[name] / 1000, offered[name]) for name in sorted(offered)}

    def placed_per_s(self, now: int) -> float:
        while self.placed_at and self.placed_at[0] < now - RECENT_MS:
            self.placed_at.popleft()
        return len(self.placed_at) * 1000 / RECENT_MS

    def p50_wait_s(self) -> float | None:
        return median(self.waits_ms) / 1000 if self.waits_ms else None

    def phase(self, job_id: str) -> str:
        """Return the phase of a job; `unknown` until a ledger holds it."""
        placed = self.by_ledger["placement"].get(job_id)
        return placed or self.by_ledger["admission"].get(job_id, "unknown")

    def counts(self) -> dict[str, int]:
        """Return the number of expected jobs by phase."""
        return dict(Counter(self.phase(job_id) for job_id in self.expected))

    def missing(self) -> list[str]:
        """Return the expected jobs that have not ended, with their phase."""
        phases = ((job_id, self.phase(job_id)) for job_id in sorted(self.expected))
        return [f"{job_id} ({phase})" for job_id, phase in phases if phase not in TERMINAL]


def phase_after(event: Event) -> str | None:
    match event:
        case JobDeferred():
            return "deferred"
        case JobAdmitted():
            return "admitted"
        case JobRejected():
            return "rejected"
        case JobEnqueued() | JobHeld() | JobRequeued() | JobReadmitted():
            return "waiting"
        case JobStarted():
            return "running"
        case JobPreempted() | JobMigrated() | JobResized() | JobAttemptFailed():
            return "stopping"
        case JobSucceeded():
            return "succeeded"
        case JobFailed():
            return "failed"
        case JobCancelled():
            return "cancelled"
        case _:
            return None


def decision_line(event: Event, phase: str) -> str:
    """Return a decision as one line."""
    short = event.subject[:8]
    match event:
        case JobPlaced():
            where = ", ".join(sorted({allocation.node_id for allocation in event.allocations})[:3])
            return f"{short} placed on {where} after {event.waited_ms / 1000:.1f} s"
        case JobHeld():
            return f"{short} held: {event.reason}, {event.short_gpus:g} GPUs short"
        case JobDeferred():
            return f"{short} deferred: {event.reason}"
        case JobRejected():
            return f"{short} rejected: {event.reason} {event.detail}".rstrip()
        case JobFailed():
            return f"{short} failed: {event.reason}"
        case _:
            return f"{short} {phase}"
