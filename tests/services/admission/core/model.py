"""An independent account of what admission may say, kept beside it fact by fact."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from shared.contracts.base import Event
from shared.contracts.jobs import (
    CancelRequested,
    CommandAccepted,
    CommandRefused,
    JobAdmitted,
    JobDeferred,
    JobRejected,
    JobsReleased,
    QuotaChanged,
)
from shared.contracts.placement import JobCancelled

PHASES = {"deferred": {"", "deferred"}, "admitted": {"", "deferred"}, "over": {"", "deferred"}}
"""From which phases a job may come; an admitted one is over only by a release."""


@dataclass
class Account:
    answers: Counter[str] = field(default_factory=Counter)
    phase: dict[str, str] = field(default_factory=dict)
    tenant: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, tuple[str, float, bool]] = field(default_factory=dict)
    quotas: dict[str, QuotaChanged] = field(default_factory=dict)
    cancels: dict[str, list[str]] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        match event:
            case CommandAccepted() | CommandRefused():
                self.answers[event.command_id] += 1
                assert self.answers[event.command_id] == 1
            case QuotaChanged():
                self.quotas[event.tenant] = event
            case JobDeferred():
                self.move(event, "deferred")
            case JobRejected() | JobCancelled():
                self.move(event, "over")
            case JobAdmitted():
                self.move(event, "admitted")
                spec = event.spec
                self.jobs[event.job_id] = (event.tenant, spec.gang.gpus, spec.spot)
                self.check_bound(event.tenant, spec.spot)
            case CancelRequested():
                assert self.phase[event.job_id] == "admitted"
                self.cancels.setdefault(event.job_id, []).append(event.command_id)
            case JobsReleased():
                for end in event.ends:
                    assert self.phase[end.job_id] == "admitted"
                    self.phase[end.job_id] = "over"
                    del self.jobs[end.job_id]

    def move(self, event: JobDeferred | JobRejected | JobCancelled | JobAdmitted, to: str) -> None:
        assert self.phase.get(event.job_id, "") in PHASES[to], (event, to)
        self.phase[event.job_id] = to
        self.tenant[event.job_id] = event.tenant

    def used(self, tenant: str, spot: bool) -> float:
        return sum(g for t, g, s in self.jobs.values() if t == tenant and s == spot)

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
