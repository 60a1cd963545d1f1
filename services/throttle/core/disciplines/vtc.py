"""Virtual Token Counter (Sheng et al., OSDI'24); with the forecast of answers, Berth's order."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from services.throttle.core.disciplines.accounts import Account, Accounts, FairQueue, level, lift
from services.throttle.core.disciplines.competition import (
    MOST_AHEAD,
    Ahead,
    Competition,
    ExpectedLength,
)
from services.throttle.core.disciplines.cost import LINEAR, Cost
from services.throttle.core.disciplines.lengths import Forecast, NoForecast
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder

MOST_FORECAST = 20_000.0
"""Units of service: what the forecasts of one tenant's running requests cost together, at most.

By default that of 10,000 output tokens, the batch of VTC's evaluation.
"""


@dataclass(slots=True)
class Vtc(ServingOrder):
    """The waiting tenant with the smallest counter is served next; no preemption.

    A prompt is charged at the start, with the output that the forecast expects; output beyond
    that as it is made; what was not made is refunded at the end. Charges are divided by the
    tenant's weight.

    Bound: the services of two tenants that are backlogged for a time, per weight, differ in it by
    at most `2 (U + F) / w`: `U = max(w_p L_input, w_q M)` for prompts of at most `L_input` and a
    batch of `M` tokens; `F` the most that the forecasts of one tenant's running requests cost
    together, `most_forecast` at most, and 0 without a forecast (then it is the paper's bound); `w`
    the smaller of the two weights.

    Without `lifts` a tenant that returns from idle keeps its old counter: least counter first
    (LCF), a baseline without a bound that lets it starve the others.
    """

    cost: Cost = LINEAR
    forecast: Forecast = field(default_factory=NoForecast)
    lifts: bool = True
    most_forecast: float = MOST_FORECAST
    accounts: Accounts = field(default_factory=Accounts)
    queue: FairQueue = field(default_factory=FairQueue)
    last_emptied: Account | None = None

    def enqueue(self, request: ServedRequest) -> None:
        account = self.accounts.of(request.tenant)
        if self.lifts and account.tenant not in self.queue.queues:
            lift(account, (self.queue,), self.last_emptied)
        self.queue.append(account, request)

    def withdraw(self, request: ServedRequest) -> None:
        if self.queue.remove(request):
            self.last_emptied = self.accounts.of(request.tenant)

    def next_request(self) -> ServedRequest | None:
        return self.queue.first_request()

    def competition(self, request: ServedRequest) -> Competition:
        account = self.accounts.of(request.tenant)
        return self.queue.competition(account, self._counter_in_queue(account))

    def ahead(self, request: ServedRequest, length: ExpectedLength) -> Ahead:
        account = self.accounts.of(request.tenant)
        return self.queue.ahead(account, self._counter_in_queue(account), length, MOST_AHEAD)

    def _counter_in_queue(self, account: Account) -> float:
        """Return the counter with which a new request of the account would wait."""
        counter = account.counter
        if self.lifts and account.tenant not in self.queue.queues:
            counter = max(counter, level((self.queue,), self.last_emptied, counter))
        return counter

    def start(self, request: ServedRequest) -> None:
        self.withdraw(request)
        account = self.accounts.of(request.tenant)
        prompt_cost = self.cost.of(request.prompt_tokens, 0)
        forecast_tokens = self.forecast.of(request)
        forecast_cost = self.cost.of(request.prompt_tokens, forecast_tokens) - prompt_cost
        if account.forecast_cost + forecast_cost > self.most_forecast:
            forecast_tokens = forecast_cost = 0.0
        request.forecast_tokens = request.charged_tokens = forecast_tokens
        account.forecast_cost += forecast_cost
        account.running[request.request_id] = request
        account.charge(prompt_cost + forecast_cost)

    def charge(self, request: ServedRequest) -> None:
        if request.made_tokens > request.charged_tokens:
            self._settle(self.accounts.of(request.tenant), request)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        """Charge the difference, also that of the output where its price depends on the prompt."""
        charged = self.cost.of(request.prompt_tokens, request.charged_tokens)
        due = self.cost.of(prompt_tokens, request.charged_tokens) - charged
        account = self.accounts.of(request.tenant)
        account.forecast_cost += (
            self.cost.of(prompt_tokens, request.forecast_tokens)
            - self.cost.of(prompt_tokens, 0)
            - self._output_cost(request, request.forecast_tokens)
        )
        self._charge_or_refund(account, due)

    def finish(self, request: ServedRequest) -> None:
        account = self.accounts.of(request.tenant)
        if request.made_tokens != request.charged_tokens:
            self._settle(account, request)
        if request.forecast_tokens:
            account.forecast_cost -= self._output_cost(request, request.forecast_tokens)
        account.running.pop(request.request_id, None)
        self.forecast.learn(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.accounts.of(tenant).weight = weight

    def counter_of(self, tenant: str) -> float:
        return self.accounts.of(tenant).counter

    def note_service(self, tenant: str, counted: float) -> None:
        account = self.accounts.of(tenant)
        self._charge_or_refund(account, counted * account.weight)

    @property
    def level(self) -> float:
        return level((self.queue,), self.last_emptied)

    @property
    def spread(self) -> float:
        return self.queue.spread

    def rebase(self) -> None:
        self.accounts.rebase(float(math.floor(self.level)))
        self.queue.reindex()

    def _settle(self, account: Account, request: ServedRequest) -> None:
        prompt_tokens = request.prompt_tokens
        due = self.cost.of(prompt_tokens, request.made_tokens) - self.cost.of(
            prompt_tokens, request.charged_tokens
        )
        request.charged_tokens = float(request.made_tokens)
        self._charge_or_refund(account, due)

    def _charge_or_refund(self, account: Account, due: float) -> None:
        if due < 0:
            self.queue.refund(account, -due)
        else:
            account.charge(due)

    def _output_cost(self, request: ServedRequest, tokens: float) -> float:
        prompt_tokens = request.prompt_tokens
        return self.cost.of(prompt_tokens, tokens) - self.cost.of(prompt_tokens, 0)
