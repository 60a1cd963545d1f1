"""Forecasts of the length of an answer, learned from the answers before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.request import ServedRequest

TENANT_MEMORY = 0.8
"""Part of the weight of earlier answers of a tenant that one more leaves: about five count."""

ALL_MEMORY = 0.98
"""The same for the answers of all tenants: about fifty count."""

PRIOR_ANSWERS = 5.0
"""Answers of the tenant that weigh as much as the mean of all tenants."""


class Forecast(Protocol):
    """Expected output tokens of a request, before it has made any."""

    def of(self, request: ServedRequest) -> float: ...

    def learn(self, request: ServedRequest) -> None:
        """Learn from an answer that is complete."""


@dataclass(slots=True)
class NoForecast:
    """Expects nothing: outputs are charged as they are made."""

    def of(self, request: ServedRequest) -> float:
        return 0.0

    def learn(self, request: ServedRequest) -> None:
        """Learn nothing."""


@dataclass(slots=True)
class MovingMean:
    """The moving mean of the tenant's answers; 0 before the first (VTC-predict's artifact)."""

    by_tenant: dict[str, float] = field(default_factory=dict)

    def of(self, request: ServedRequest) -> float:
        return self.by_tenant.get(request.tenant, 0.0)

    def learn(self, request: ServedRequest) -> None:
        length = float(request.made_tokens)
        before = self.by_tenant.get(request.tenant, length)
        self.by_tenant[request.tenant] = TENANT_MEMORY * before + (1 - TENANT_MEMORY) * length


@dataclass(slots=True)
class DecayingMean:
    """A mean in which older values weigh less."""

    memory: float
    total: float = 0.0
    count: float = 0.0

    def add(self, value: float) -> None:
        self.total = self.memory * self.total + value
        self.count = self.memory * self.count + 1

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(slots=True)
class ShrunkMean:
    """The mean of a tenant's answers in an application, moved towards the mean of all tenants.

    A few answers of one tenant vary more than tenants differ: the plain moving mean charges a
    tenant too much after one long answer, and nothing before its first. It is in whole tokens, so
    that counters are exact, and tenants that got the same are equal, not apart by a rounding.
    """

    by_call: BoundedTable[tuple[str, str], DecayingMean] = field(default_factory=BoundedTable)
    of_all: DecayingMean = field(default_factory=lambda: DecayingMean(ALL_MEMORY))

    def of(self, request: ServedRequest) -> float:
        own = self.by_call.get((request.tenant, request.application))
        if own is None:
            return float(round(self.of_all.mean))
        prior = PRIOR_ANSWERS * self.of_all.mean
        return float(round((own.total + prior) / (own.count + PRIOR_ANSWERS)))

    def learn(self, request: ServedRequest) -> None:
        key = request.tenant, request.application
        self.by_call.touch(key, lambda: DecayingMean(TENANT_MEMORY)).add(request.made_tokens)
        self.of_all.add(request.made_tokens)
