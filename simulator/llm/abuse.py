"""A load of four applications in which some tenants send many times what the others do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from simulator.llm.batching import EngineLimits
from simulator.llm.requests import Outcome, TraceRequest

APPLICATIONS = {
    "summary": (1200, 60, 120),
    "chat": (200, 80, 220),
    "code": (150, 200, 350),
    "agent": (250, 150, 120),
}
"""Mean tokens of a user's input, of the system prompt and of the answer; made up."""

ABUSER = "abuser"
AGENT_CALLS = 4
PAUSE_S = 0.2
"""Between the calls of an interaction."""

LIMITS = EngineLimits(kv_tokens=16_000, batch_requests=64)


@dataclass(slots=True)
class AbuseLoad:
    """Tenants with a quarter of them in each application; `abusers` send `times` as much.

    Abusers send chats of one call, or agents of four. Lengths are gamma distributed with shape 4,
    arrivals are a Poisson process of `per_s` interactions per tenant. Every policy gets the same
    calls, of the interactions that it does not refuse.
    """

    kind: Literal["single", "agent"]
    times: int
    seed: int = 0
    per_s: float = 0.042
    span_s: float = 600.0
    tenants: int = 24
    abusers: int = 2

    def first_calls(self) -> list[TraceRequest]:
        """Draw the first calls of all interactions."""
        calls: list[TraceRequest] = []
        names = list(APPLICATIONS)
        for number in range(self.tenants):
            tenant, application, rate = f"user{number}", names[number % len(names)], self.per_s
            if number < self.abusers:
                tenant, rate = f"{ABUSER}{number}", self.per_s * self.times
                application = "agent" if self.kind == "agent" else "chat"
            draw = self._draw(tenant)
            at_s = draw.expovariate(rate)
            while at_s <= self.span_s:
                calls.append(self._call(tenant, application, f"i{len(calls)}", 0, at_s))
                at_s += draw.expovariate(rate)
        return calls

    def follow(self, outcome: Outcome, at_s: float) -> TraceRequest | None:
        """Draw the next call of an agent; a refused one ends its interaction."""
        call = outcome.request
        if outcome.refused or call.application != "agent" or call.stage + 1 >= AGENT_CALLS:
            return None
        return self._call(
            call.tenant, call.application, call.interaction, call.stage + 1, at_s + PAUSE_S
        )

    def _call(
        self, tenant: str, application: str, interaction: str, stage: int, at_s: float
    ) -> TraceRequest:
        user, system, answer = APPLICATIONS[application]
        draw = self._draw(f"{interaction}.{stage}")
        return TraceRequest(
            f"{interaction}.{stage}",
            tenant,
            at_s,
            _length(draw, user) + system,
            _length(draw, answer),
            application,
            interaction,
            stage,
            system,
        )

    def _draw(self, subject: str) -> random.Random:
        return random.Random(f"{self.kind} {self.times} {self.seed} {subject}")


def _length(draw: random.Random, mean: int) -> int:
    return max(1, round(draw.gammavariate(4, mean / 4)))


def is_abuser(tenant: str) -> bool:
    return tenant.startswith(ABUSER)
