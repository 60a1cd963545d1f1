"""No budget of an LLM endpoint is passed by its reservations."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from shared.projections.ledger_events import LedgerEvent, Payload
from shared.verify.llm_budgets import EndpointBudget, HeldRequest, Prices, money_prices
from shared.verify.rules import Violation

TOLERANCE = 1e-6
FIXED_PRICES: dict[str, Prices] = {"requests": (1.0, 0.0, 0.0), "tokens": (0.0, 1.0, 1.0)}


def prices_of(unit: str, settings: Payload) -> Prices:
    return FIXED_PRICES[unit] if unit in FIXED_PRICES else money_prices(settings)


@dataclass(slots=True)
class BudgetLane:
    """The budgets of the endpoint of one partition, and its open requests."""

    settings: Payload | None = None
    budgets: list[EndpointBudget] = field(default_factory=list)
    open: dict[str, HeldRequest] = field(default_factory=dict)
    stepped_ms: int = 0
    """By how much the clock stepped: the endpoint counts its times without it."""

    def configure(self, settings: Payload) -> None:
        """Give the endpoint its budgets; a budget of which only limit or prices are new goes on."""
        former = self.budgets if self.settings is not None else []
        self.settings = settings
        self.budgets = [self._renewed(budget, former) for budget in settings.get("budgets", [])]

    def _renewed(self, requested: Payload, former: list[EndpointBudget]) -> EndpointBudget:
        assert self.settings is not None
        budget = EndpointBudget(requested, prices_of(requested["unit"], self.settings))
        for other in former:
            if other.kind == budget.kind:
                budget.uses, budget.unchecked = deepcopy(other.uses), set(other.unchecked)
                if other.prices != budget.prices:
                    self._reprice(budget)
                return budget
        for request in self.open.values():
            budget.count_again(request)
        return budget

    def _reprice(self, budget: EndpointBudget) -> None:
        for own in budget.uses.values():
            for use in own.values():
                use.held = 0.0
        for request in self.open.values():
            budget.hold_again(request)


@dataclass(slots=True)
class BudgetRule:
    """Replays the budgets of every endpoint: at each reservation, what was used and what open
    requests may still use is within the limit."""

    CARRIED: ClassVar[tuple[str, ...]] = ("lanes",)
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    name: str = "no budget of an LLM endpoint is passed"
    lanes: dict[int, BudgetLane] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger != "throttle":
            return
        lane = self.lanes.setdefault(event.partition, BudgetLane())
        if lane.stepped_ms:
            event = msgspec.structs.replace(event, at=event.at - lane.stepped_ms)
        match event.type:
            case "llm.clock-stepped.v1":
                lane.stepped_ms += event.data["by_ms"]
            case "llm.queued.v1":
                self._queue(event, lane)
            case "llm.charged.v1":
                for report in event.data["made"]:
                    make(lane, report["request_id"], report["tokens"], event.at)
            case "llm.started.v1" | "llm.finished.v1" | "llm.rejected.v1":
                apply(lane, event)
            case "endpoint.configured.v2":
                lane.configure(event.data)
            case "endpoint.deleted.v1":
                lane.settings = None

    def _queue(self, event: LedgerEvent, lane: BudgetLane) -> None:
        data = event.data
        request = HeldRequest(data, prompt_tokens=data["prompt_tokens"], queued_at=event.at)
        lane.open[data["request_id"]] = request
        for budget in lane.budgets:
            excess, limit = budget.queue(request, event.at), budget.settings["limit"]
            if excess > TOLERANCE * limit and budget.is_checked(request):
                self._add(event, budget, request, excess)

    def _add(
        self, event: LedgerEvent, budget: EndpointBudget, request: HeldRequest, excess: float
    ) -> None:
        holder = "/".join(part for part in budget.holder_of(request) if part)
        unit, limit = budget.settings["unit"], budget.settings["limit"]
        kind = budget.settings["holder"]
        detail = f"budget of {limit:g} {unit} of {kind} {holder} is passed by {excess:g}"
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations


def apply(lane: BudgetLane, event: LedgerEvent) -> None:
    """Apply the start, the end or the rejection of an open request; any other changes nothing."""
    request_id, at = event.data["request_id"], event.at
    request = lane.open.get(request_id)
    if request is None or request.queued["tenant"] != event.data["tenant"]:
        return
    if event.type == "llm.started.v1":
        request.started_at = at
        for budget in lane.budgets:
            budget.start(request, at)
        return
    if event.type == "llm.finished.v1":
        make(lane, request_id, max(event.data["output_tokens"] - request.made_tokens, 0), at)
        for budget in lane.budgets:
            budget.end(request, event.data["prompt_tokens"], at)
    else:
        for budget in lane.budgets:
            budget.withdraw(request)
    del lane.open[request_id]


def make(lane: BudgetLane, request_id: str, tokens: int, at: int) -> None:
    """Count output of a running request."""
    request = lane.open.get(request_id)
    if request is not None and request.started_at:
        for budget in lane.budgets:
            budget.make(request, tokens, at)
        request.made_tokens += tokens
