"""The rules of `berth verify` find nothing in what the decider decides on random loads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from services.throttle.core.decide import Throttle
from services.throttle.core.disciplines.budgets import Budget
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted, TokenBudget
from shared.contracts.llm import (
    CapacityObserved,
    EngineAdvanced,
    RequestEnd,
    RequestsEnded,
    RequestsLeft,
    TokensMade,
)
from shared.projections.ledger_events import LedgerEvent
from shared.verify.llm_lifecycle import LlmLifecycleRule
from shared.verify.llm_limits import BudgetRule
from tests.harness.decider import AT, an_input, fold, run
from tests.services.throttle.llm import serve_command
from tests.shared.ledger_events import ledger_event

TENANTS = ("red", "blue")
HOLDERS = ("tenant", "user", "application", "model")
UNITS = ("requests", "tokens", "money")
MEMORIES = ("window", "half_life", "forever")


class Load:
    """A lane under random requests, ends, settings and pauses."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.state = EndpointState(0)
        self.now = AT
        self.lifecycle, self.limits = LlmLifecycleRule(), BudgetRule()
        self.seq = 0
        self.sent = 0
        for tenant in TENANTS:
            self.apply([TenantNoted(tenant=tenant)])
        self.configure()
        self.decide(CapacityObserved(requests=3))

    def apply(self, events: list[Event]) -> None:
        fold(Throttle(), self.state, events, at=self.now)
        self.observe(events)

    def decide(self, message: Any, source: str = "local") -> None:
        item = an_input(message, source, tenant=getattr(message, "tenant", ""))
        self.observe(run(Throttle(), self.state, [item], self.now))

    def observe(self, events: list[Any]) -> None:
        for event in events:
            self.seq += 1
            seen: LedgerEvent = ledger_event("throttle", event, seq=self.seq, at=self.now)
            self.lifecycle.observe(seen)
            self.limits.observe(seen)

    def configure(self) -> None:
        self.decide(EndpointConfigured(endpoint="chat", partition=0, **self.settings()), "access")

    def settings(self) -> dict[str, Any]:
        pick = self.chance.choice
        budgets = [
            TokenBudget.model_validate(
                {
                    "holder": pick(HOLDERS),
                    "unit": unit,
                    "limit": {"requests": 8, "tokens": 600, "money": 900.0}[unit],
                    "memory": pick(MEMORIES),
                    "period_s": pick((2.0, 60.0)),
                }
            )
            for unit in self.chance.sample(UNITS, 2)
        ]
        prices = {"request_price": pick((0.0, 1.5)), "output_price": pick((1e6, 2.5e6))}
        return {"budgets": tuple(budgets), "discipline": pick(("berth", "fcfs")), **prices}

    def step(self) -> None:
        self.now += self.chance.choice((0, 1, 40, 900, 5000))
        pick = self.chance.choice
        kind = self.chance.random()
        if kind < 0.5:
            self.send()
        elif kind < 0.65 and self.state.running:
            served = pick(list(self.state.running.values())).served
            tokens = min(pick((1, 5)), served.remaining_tokens)
            made = TokensMade(request_id=served.request_id, tokens=tokens)
            self.decide(EngineAdvanced(made=(made,)))
        elif kind < 0.9 and self.state.running:
            self.decide(RequestsEnded(ends=(self.end(),)))
        elif kind < 0.94 and self.state.waiting:
            self.decide(RequestsLeft(request_ids=(pick(list(self.state.waiting)),)))
        elif kind < 0.96:
            self.configure()
        elif kind < 0.97:
            self.decide(EndpointDeleted(endpoint="chat", partition=0), "access")
            self.configure()

    def send(self) -> None:
        self.sent += self.chance.random() < 0.9
        request_id, tenant = f"r{self.sent}", self.chance.choice(TENANTS)
        prompt, most = self.chance.randrange(1, 60), self.chance.randrange(1, 60)
        user = self.chance.choice("uvw")
        self.decide(serve_command(request_id, tenant, prompt, most, user=user))

    def end(self) -> RequestEnd:
        request = self.chance.choice(list(self.state.running.values()))
        served = request.served
        output_tokens = self.chance.randint(0, served.max_output_tokens)
        outcome: Any = self.chance.choice(("completed", "cancelled", "failed", "lost"))
        prompt = None if outcome == "lost" else self.chance.randint(0, served.prompt_tokens)
        return RequestEnd(
            request_id=request.request_id,
            outcome=outcome,
            output_tokens=output_tokens,
            prompt_tokens=prompt,
        )

    def uses(self) -> Iterator[tuple[Any, float, float]]:
        """Yield each holder's held units as the decider has them, and as the rule has them."""
        guards = [g for g in self.state.discipline.guards if isinstance(g, Budget)]
        for guard, budget in zip(guards, self.limits.lanes[0].budgets, strict=True):
            for owner, uses in budget.uses.items():
                own = guard.usages.get(owner)
                for holder, use in uses.items():
                    known = own.get(holder) if own is not None else None
                    yield (owner, holder), known.held if known is not None else 0.0, use.held


@pytest.mark.parametrize("seed", range(60))
def test_random_decisions_break_no_rule(seed: int) -> None:
    load = Load(seed)
    for _ in range(300):
        load.step()
    assert [*load.lifecycle.finish()] == []
    assert [*load.limits.finish()] == []
    for holder, held, folded in load.uses():
        assert folded == pytest.approx(held, abs=1e-6), holder


def test_a_decider_that_refuses_nothing_passes_its_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Budget, "refusal", lambda *_: None)
    load = Load(1)
    for _ in range(300):
        load.step()
    assert [*load.limits.finish()]
