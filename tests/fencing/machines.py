"""Machines with honest agents: leases, steps and orders by the rules of the node's side.

Times are seconds of one true clock. A worker whose deadline has passed lives on for `KILL_S`, the
longest that the rules allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KILL_S = 2.0


@dataclass(slots=True)
class Step:
    """A worker on a machine."""

    allocation_id: str
    job_id: str
    gpus: tuple[int, ...]
    deadline_s: float
    is_stopping: bool = False
    is_stuck: bool = False


@dataclass(slots=True)
class Sent:
    """A heartbeat on its way: appended to the log, then acknowledged, or lost."""

    incarnation: str
    sent_s: float
    is_appended: bool = False


@dataclass(slots=True)
class Machine:
    """One machine that calls itself `node_id`; a clone has the name of the original."""

    node_id: str
    hardware: str
    is_up: bool = True
    is_cut: bool = False
    """It sends nothing, but what is on its way may still arrive."""
    generation: int = 0
    boot: int = 1
    deadline_s: float = 0.0
    stop_after_s: float = 0.0
    terms_id: str = ""
    has_lapsed: bool = True
    steps: dict[str, Step] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    """Allocations that were started or stopped before: no order starts them again."""
    sent: list[Sent] = field(default_factory=list)

    @property
    def incarnation(self) -> str:
        return f"{self.hardware}.{self.generation}"

    def longest_deadline_s(self) -> float:
        return max([self.deadline_s, *(step.deadline_s for step in self.steps.values())])

    def pass_time(self, now_s: float) -> None:
        """Let the lease lapse, and end the workers whose time is over."""
        if now_s >= self.deadline_s:
            self.has_lapsed = True
        for step in list(self.steps.values()):
            if now_s >= step.deadline_s + KILL_S and not step.is_stuck:
                del self.steps[step.allocation_id]

    def begin(self, now_s: float, known: int, terms_id: str, stop_after_s: float) -> None:
        """Make a new incarnation; its first deadline counts from the registration."""
        self.generation = max(self.generation, known) + 1
        self.terms_id, self.stop_after_s = terms_id, stop_after_s
        self.deadline_s, self.has_lapsed = now_s + stop_after_s, False
        self.sent.clear()

    def send(self, now_s: float) -> None:
        self.sent.append(Sent(self.incarnation, now_s))

    def acknowledge(self, heartbeat: Sent, now_s: float) -> None:
        """Extend the lease from the time of sending, unless it has lapsed."""
        self.sent.remove(heartbeat)
        is_present = heartbeat.incarnation == self.incarnation
        if is_present and not self.has_lapsed and now_s < self.deadline_s:
            self.deadline_s = max(self.deadline_s, heartbeat.sent_s + self.stop_after_s)

    def hand_deadlines(self, now_s: float) -> None:
        """Give the present deadline to the steps that are not over it."""
        if not self.has_lapsed:
            for step in self.steps.values():
                if now_s < step.deadline_s and not step.is_stopping:
                    step.deadline_s = max(step.deadline_s, self.deadline_s)

    def start(self, allocation_id: str, job_id: str, gpus: tuple[int, ...], now_s: float) -> bool:
        """Start a worker as ordered; a stale order, or one under a lapsed lease, is refused."""
        if self.has_lapsed or now_s >= self.deadline_s or allocation_id in self.refused:
            return False
        self.refused.add(allocation_id)
        self.steps[allocation_id] = Step(allocation_id, job_id, gpus, self.deadline_s)
        return True

    def stop(self, allocation_id: str) -> None:
        self.refused.add(allocation_id)
        if allocation_id in self.steps:
            self.steps[allocation_id].is_stopping = True

    def end(self, allocation_id: str) -> None:
        self.steps.pop(allocation_id, None)

    def die(self) -> None:
        """Lose power: every worker is dead at once."""
        self.is_up, self.has_lapsed = False, True
        self.steps.clear()
        self.sent.clear()

    def is_clear(self) -> bool:
        """Return whether nothing of an older incarnation lives but what cannot be killed."""
        return all(step.is_stuck for step in self.steps.values())

    def unusable_gpus(self) -> tuple[int, ...]:
        return tuple(sorted({gpu for step in self.steps.values() for gpu in step.gpus}))
