"""An independent model of the admission ledger, checked event by event."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import inf

from shared.contracts.admission import (
    ArrayAccepted,
    ArrayCancelRequested,
    CancelRequested,
    JobAdmitted,
    JobDeferred,
    JobRejected,
    QuotaChanged,
)
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.bookkeeping import JobSizeNoted, JobsReleased, UserNoted
from shared.contracts.command_answers import CommandAccepted, CommandRefused

PHASES = {"deferred": {"", "deferred"}, "admitted": {"", "deferred"}, "over": {"", "deferred"}}
"""Phases that a job may come from; an admitted job is over only by a release."""


@dataclass
class LedgerModel:
    answers: Counter[str] = field(default_factory=Counter)
    phase: dict[str, str] = field(default_factory=dict)
    tenant: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, tuple[str, float, bool, float]] = field(default_factory=dict)
    quotas: dict[str, QuotaChanged] = field(default_factory=dict)
    users: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Tenant and user of each admitted job."""
    bounds_of_users: dict[tuple[str, str], float] = field(default_factory=dict)
    cancels: dict[str, list[str]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Jobs of each array."""
    array_cancels: dict[str, str] = field(default_factory=dict)
    """Array that each cancel without an answer is about, by command id."""
    stopped: dict[str, set[str]] = field(default_factory=dict)
    """Jobs that were over before the first cancel, by cancelled array."""
    was_cancelled: set[str] = field(default_factory=set)

    def apply(self, event: Event) -> None:
        match event:
            case CommandAccepted() | CommandRefused():
                self.answers[event.command_id] += 1
                assert self.answers[event.command_id] == 1
                self.answered(event)
            case ArrayAccepted():
                self.sizes[event.job_id] = event.array_size
            case ArrayCancelRequested():
                self.array_cancels[event.command_id] = event.job_id
                over = {j for j in self.made(event.job_id) if self.phase[j] == "over"}
                self.stopped.setdefault(event.job_id, over)
            case UserNoted():
                bound = event.bounds.max_gpus if event.bounds else inf
                self.bounds_of_users[event.tenant, event.user] = bound
            case QuotaChanged():
                self.quotas[event.tenant] = event
            case JobDeferred():
                self.move(event, "deferred")
            case JobRejected() | JobCancelled():
                self.move(event, "over")
                if isinstance(event, JobCancelled):
                    self.was_cancelled.add(event.job_id)
            case JobSizeNoted():
                tenant, gpus, spot, per_worker = self.jobs[event.job_id]
                self.jobs[event.job_id] = (tenant, per_worker * event.workers, spot, per_worker)
            case JobAdmitted():
                self.move(event, "admitted")
                spec = event.spec
                per_worker = spec.gang.gpus_per_worker
                self.jobs[event.job_id] = (event.tenant, spec.gang.gpus, spec.spot, per_worker)
                self.check_bound(event.tenant, spec.spot)
                owner = self.users[event.job_id] = (event.tenant, spec.user)
                bound = self.bounds_of_users.get(owner, inf)
                assert self.used_by(owner) <= bound + 1e-9
            case CancelRequested():
                assert self.phase[event.job_id] == "admitted"
                if not event.of_array:
                    self.cancels.setdefault(event.job_id, []).append(event.command_id)
            case JobsReleased():
                for end in event.ends:
                    assert self.phase[end.job_id] == "admitted"
                    self.phase[end.job_id] = "over"
                    if end.outcome == "cancelled":
                        self.was_cancelled.add(end.job_id)
                    del self.jobs[end.job_id]

    def move(self, event: JobDeferred | JobRejected | JobCancelled | JobAdmitted, to: str) -> None:
        assert self.phase.get(event.job_id, "") in PHASES[to], (event, to)
        stem = event.job_id.partition(".")[0]
        assert event.job_id in self.phase or stem not in self.stopped, "made after the cancel"
        self.phase[event.job_id] = to
        self.tenant[event.job_id] = event.tenant

    def made(self, array: str) -> list[str]:
        return [job_id for job_id in self.phase if job_id.startswith(f"{array}.")]

    def answered(self, event: CommandAccepted | CommandRefused) -> None:
        """Check the answer to an array's cancel: accepted if it ended a job, and all are over."""
        array = self.array_cancels.pop(event.command_id, None)
        if array is None:
            return
        made = self.made(array)
        assert all(self.phase[job_id] == "over" for job_id in made)
        cut = self.was_cancelled & set(made) - self.stopped[array]
        something = bool(cut) or len(made) < self.sizes[array]
        assert isinstance(event, CommandAccepted) == something

    def used(self, tenant: str, spot: bool) -> float:
        return sum(g for t, g, s, _ in self.jobs.values() if t == tenant and s == spot)

    def used_by(self, owner: tuple[str, str]) -> float:
        return sum(gpus for job, (_, gpus, *_) in self.jobs.items() if self.users[job] == owner)

    def check_bound(self, tenant: str, spot: bool) -> None:
        quota = self.quotas.get(tenant)
        if quota is None:
            return
        if spot:
            bound = quota.spot_gpus
        else:
            borrow = quota.borrow_gpus
            bound = None if borrow is None else quota.guaranteed_gpus + borrow
        assert bound is None or self.used(tenant, spot) <= bound + 1e-9
