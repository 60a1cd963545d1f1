"""The usual cost of a call of an application, learned online from many tenants."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.request import ServedRequest

RECENT_CALLS = 15
"""Calls of one tenant that count, so that a profile follows a change of the application."""

PROFILED_TENANTS = 256
"""Tenants of one application that count; the others pay by the profile but do not move it."""


@dataclass(frozen=True, slots=True)
class TokenPrices:
    """Units per token of a user's input, of the application's prompt and of the output.

    Both public re-implementations of FairServe use 1, 2 and 1.
    """

    user: float = 1.0
    system: float = 2.0
    output: float = 1.0

    def of_prompt(self, request: ServedRequest) -> float:
        user_tokens = request.prompt_tokens - request.system_tokens
        return self.user * user_tokens + self.system * request.system_tokens

    def of_output(self, tokens: float) -> float:
        return self.output * tokens


@dataclass(slots=True)
class CallProfile:
    """The usual cost of one kind of call: the median over tenants of the median of each tenant.

    A tenant moves its own median only, so that it takes half of the tenants to move the profile:
    one that sends long prompts does not make them usual.
    """

    costs: dict[str, deque[float]] = field(default_factory=dict)
    medians: dict[str, float] = field(default_factory=dict)
    usual_cost: float = 0.0

    def learn(self, tenant: str, cost: float) -> None:
        costs = self.costs.get(tenant)
        if costs is None:
            if len(self.costs) >= PROFILED_TENANTS:
                return
            costs = self.costs[tenant] = deque(maxlen=RECENT_CALLS)
        costs.append(cost)
        self.medians[tenant] = median(costs)
        self.usual_cost = median(self.medians.values())


@dataclass(slots=True)
class CallProfiles:
    """The profiles of all kinds of calls: by application and stage of the interaction."""

    prices: TokenPrices = TokenPrices()
    by_call: BoundedTable[tuple[str, int], CallProfile] = field(default_factory=BoundedTable)

    def usual_cost(self, request: ServedRequest) -> float | None:
        """Return the usual cost of such a call; None before the first has ended."""
        profile = self.by_call.get((request.application, request.stage))
        return profile.usual_cost if profile else None

    def learn(self, request: ServedRequest) -> None:
        cost = self.prices.of_prompt(request) + self.prices.of_output(request.made_tokens)
        key = request.application, request.stage
        self.by_call.touch(key, CallProfile).learn(request.tenant, cost)
