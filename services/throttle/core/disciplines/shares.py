"""Throttling by shares: under overload, of tenants that took many times what is theirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.rates import is_in_progress
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import MINUTE_MS, EngineLoad, Guard, Throttled

STEP_MS = 5_000
"""Resolution of the minute: what was served in one step is forgotten at once."""

LEAST_SPAN_MS = 15_000
"""Shares are only compared when that much of the minute is known."""


@dataclass(slots=True)
class ServiceStep:
    """The service of a few seconds, by tenant, in units of VTC's linear cost."""

    began_at: int
    by_tenant: dict[str, float] = field(default_factory=dict)
    units: float = 0.0

    def add(self, tenant: str, units: float) -> None:
        self.by_tenant[tenant] = self.by_tenant.get(tenant, 0.0) + units
        self.units += units


@dataclass(slots=True)
class ServiceShare(Guard):
    """Under overload, refuses first calls of a tenant that took many times its share.

    The share is what each of the tenants that were served in the last minute would have got, had
    all got the same per weight; the limit is `factor` times it. So there is nothing to configure
    per tenant. Bound: a tenant that got at most `factor` times its share in the last minute is
    never refused, and an interaction in progress is not cut (`is_in_progress`).
    """

    factor: float = 1.75
    weights: dict[str, float] = field(default_factory=dict)
    steps: deque[ServiceStep] = field(default_factory=deque)
    served: dict[str, int] = field(default_factory=dict)
    """The tenants of the steps, and in how many of them each was served."""
    served_weight: float = 0.0

    def __post_init__(self) -> None:
        if not self.factor >= 1:
            raise ValueError(f"factor: {self.factor} shares is below 1")

    def refusal(self, request: ServedRequest, load: EngineLoad, now: int) -> Throttled | None:
        if is_in_progress(request) or not load.is_overloaded or len(self.served) < 2:
            return None
        steps = list(self._steps_since(now - MINUTE_MS))
        if not steps or now - steps[0].began_at < LEAST_SPAN_MS:
            return None
        tenant = request.tenant
        weight = self.weights.get(tenant, 1.0)
        share = sum(step.units for step in steps) * weight / self.served_weight
        excess = sum(step.by_tenant.get(tenant, 0.0) for step in steps) - self.factor * share
        if excess <= 0:
            return None
        return Throttled("service_share", _retry_after_ms(steps, tenant, excess, now))

    def note_started(self, request: ServedRequest, at: int) -> None:
        self._add(request.tenant, LINEAR.prompt_price * request.prompt_tokens, at)

    def note_made(self, request: ServedRequest, tokens: int, at: int) -> None:
        self._add(request.tenant, LINEAR.output_price * tokens, at)

    def note_prompt(self, request: ServedRequest, tokens: int, at: int) -> None:
        units = LINEAR.prompt_price * tokens
        if units > 0:
            self._add(request.tenant, units, at)
        else:
            self._refund(request, -units)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.weights[tenant] = weight
        self._weigh()

    def _add(self, tenant: str, units: float, at: int) -> None:
        if not self.steps or at >= self.steps[-1].began_at + STEP_MS:
            self._forget(at - MINUTE_MS)
            self.steps.append(ServiceStep(at))
        step = self.steps[-1]
        if tenant not in step.by_tenant:
            if tenant not in self.served:
                self.served_weight += self.weights.get(tenant, 1.0)
            self.served[tenant] = self.served.get(tenant, 0) + 1
        step.add(tenant, units)

    def _refund(self, request: ServedRequest, units: float) -> None:
        """Take back units of a prompt in the step in which it was charged, if it is known still."""
        for step in reversed(self.steps):
            if step.began_at <= request.started_at:
                if request.tenant in step.by_tenant:
                    step.add(request.tenant, -min(units, step.by_tenant[request.tenant]))
                return

    def _steps_since(self, since: int) -> Iterator[ServiceStep]:
        return (step for step in self.steps if step.began_at > since)

    def _forget(self, until: int) -> None:
        while self.steps and self.steps[0].began_at <= until:
            for tenant in self.steps.popleft().by_tenant:
                self.served[tenant] -= 1
                if not self.served[tenant]:
                    del self.served[tenant]
        self._weigh()

    def _weigh(self) -> None:
        self.served_weight = sum(self.weights.get(tenant, 1.0) for tenant in self.served)


def _retry_after_ms(steps: list[ServiceStep], tenant: str, excess: float, now: int) -> int:
    """Return in how many ms the minute has lost the excess, if nothing more is served."""
    for step in steps:
        excess -= step.by_tenant.get(tenant, 0.0)
        if excess <= 0:
            return step.began_at + MINUTE_MS - now
    return MINUTE_MS
