"""Figures of the LLM requests of each tenant: a fold over the ledger of throttle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shared.contracts.llm import (
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.ledger.decider import Fact


@dataclass(slots=True)
class TenantRequests:
    """The requests of one tenant."""

    queued: int = 0
    finished: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    waits_ms: list[int] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)

    def summary(self) -> dict[str, object]:
        return {
            "requests": self.queued + self.rejected.total(),
            "finished": self.finished,
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "p50_wait_s": percentile(self.waits_ms, 50) / 1000,
            "p99_wait_s": percentile(self.waits_ms, 99) / 1000,
            "rejected": dict(self.rejected),
        }


@dataclass(slots=True)
class WaitingRequest:
    """A request in the queue; `passed_by` counts starts of the abuser since it came."""

    tenant: str
    passed_by: int = 0


@dataclass(slots=True)
class LlmFigures:
    """Figures by tenant, and how often requests of `abuser` were started before others."""

    abuser: str
    tenants: dict[str, TenantRequests] = field(default_factory=dict)
    waiting: dict[str, WaitingRequest] = field(default_factory=dict)
    passed_by: list[int] = field(default_factory=list)
    """By request of another tenant: starts of the abuser while it waited."""
    ahead: list[int] = field(default_factory=list)
    """By request of another tenant: requests of the abuser that waited when it came."""

    def see(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            match fact.event:
                case LlmRequestQueued(request_id=request_id, tenant=tenant):
                    self._queue(request_id, tenant)
                case LlmRequestStarted() as started:
                    self._start(started)
                case LlmRequestRejected(tenant=tenant, request_id=request_id, reason=reason):
                    if self.waiting.pop(request_id, None) is not None:
                        self._of(tenant).queued -= 1
                    self._of(tenant).rejected[reason] += 1
                case LlmRequestFinished() as finished:
                    self._finish(finished)

    def finished(self, tenant: str) -> int:
        return self._of(tenant).finished

    def refused(self, tenant: str) -> int:
        """Return how many of its requests were rejected, but for those whose client left."""
        rejected = self._of(tenant).rejected
        return rejected.total() - rejected["cancelled"]

    def summary(self) -> dict[str, object]:
        """Return the figures; in a first-come queue `passed_by_abuser` would be `abuser_ahead`."""
        return {
            "abuser": self.abuser,
            "tenants": {name: self.tenants[name].summary() for name in sorted(self.tenants)},
            "abuser_ahead": {"p50": percentile(self.ahead, 50), "max": max(self.ahead, default=0)},
            "passed_by_abuser": {
                "p50": percentile(self.passed_by, 50),
                "max": max(self.passed_by, default=0),
            },
        }

    def _of(self, tenant: str) -> TenantRequests:
        return self.tenants.setdefault(tenant, TenantRequests())

    def _queue(self, request_id: str, tenant: str) -> None:
        self._of(tenant).queued += 1
        if tenant != self.abuser:
            self.ahead.append(sum(one.tenant == self.abuser for one in self.waiting.values()))
        self.waiting[request_id] = WaitingRequest(tenant)

    def _start(self, started: LlmRequestStarted) -> None:
        request = self.waiting.pop(started.request_id, None)
        self._of(started.tenant).waits_ms.append(started.waited_ms)
        if started.tenant == self.abuser:
            for other in self.waiting.values():
                other.passed_by += other.tenant != self.abuser
        elif request is not None:
            self.passed_by.append(request.passed_by)

    def _finish(self, finished: LlmRequestFinished) -> None:
        tenant = self._of(finished.tenant)
        tenant.finished += finished.outcome == "completed"
        tenant.prompt_tokens += finished.prompt_tokens
        tenant.output_tokens += finished.output_tokens


def percentile(values: Sequence[int], percent: int) -> int:
    """Return the smallest value that so many percent are not above; 0 for none."""
    if not values:
        return 0
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]
