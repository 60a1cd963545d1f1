"""FairServe's weighted service counter (arXiv 2411.15997): calls are charged by application.

The rules are those on which two public re-implementations of the paper agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from services.throttle.core.disciplines.accounts import Account, Accounts, FairQueue, level, lift
from services.throttle.core.disciplines.competition import Competition
from services.throttle.core.disciplines.profiles import CallProfiles
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder

FIRST_OUTPUT_TOKENS = 256
"""Output that is taken to be usual before the first call of an application has ended."""


@dataclass(slots=True)
class WeightedService(ServingOrder):
    """Calls of interactions in progress first, then the tenant with the smallest counter.

    A call that costs as much as such calls usually do adds 1 to its tenant's counter, whatever
    the application, divided by the tenant's weight.

    Bound: none in tokens, as FairServe gives that up on purpose; calls in progress go first
    without limit. The counters of two tenants that wait with first calls alone differ by at most
    what one tenant's calls in the batch add to its counter.
    """

    profiles: CallProfiles = field(default_factory=CallProfiles)
    accounts: Accounts = field(default_factory=Accounts)
    in_progress: FairQueue = field(default_factory=FairQueue)
    first_calls: FairQueue = field(default_factory=FairQueue)
    last_emptied: Account | None = None

    def enqueue(self, request: ServedRequest) -> None:
        account = self.accounts.of(request.tenant)
        if not self._waits(account):
            lift(account, (self.in_progress, self.first_calls), self.last_emptied)
        self._queue(request).append(account, request)

    def withdraw(self, request: ServedRequest) -> None:
        self._queue(request).remove(request)
        account = self.accounts.of(request.tenant)
        if not self._waits(account):
            self.last_emptied = account

    def next_request(self) -> ServedRequest | None:
        return self.in_progress.first_request() or self.first_calls.first_request()

    def competition(self, request: ServedRequest) -> Competition:
        account = self.accounts.of(request.tenant)
        queues = (self.in_progress, self.first_calls)
        counter = account.counter
        if not self._waits(account):
            counter = max(counter, level(queues, self.last_emptied, counter))
        queue = self._queue(request)
        first = 0 if request.is_in_progress else self.in_progress.waiting
        return queue.competition(account, counter, first)

    def start(self, request: ServedRequest) -> None:
        self.withdraw(request)
        prices = self.profiles.prices
        cost = prices.of_prompt(request)
        usual = self.profiles.usual_cost(request) or cost + prices.of_output(FIRST_OUTPUT_TOKENS)
        request.unit_cost = max(usual, 1.0)
        self.accounts.of(request.tenant).charge(cost / request.unit_cost)

    def charge(self, request: ServedRequest) -> None:
        due = request.made_tokens - request.charged_tokens
        request.charged_tokens = request.made_tokens
        cost = self.profiles.prices.of_output(due)
        self.accounts.of(request.tenant).charge(cost / request.unit_cost)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        due = self.profiles.prices.user * (prompt_tokens - request.prompt_tokens)
        account = self.accounts.of(request.tenant)
        if due < 0:
            self._queue(request).refund(account, -due / request.unit_cost)
        else:
            account.charge(due / request.unit_cost)

    def finish(self, request: ServedRequest) -> None:
        self.charge(request)
        self.profiles.learn(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.accounts.of(tenant).weight = weight

    @property
    def level(self) -> float:
        return level((self.in_progress, self.first_calls), self.last_emptied)

    def rebase(self) -> None:
        self.accounts.rebase(float(math.floor(self.level)))
        self.in_progress.reindex()
        self.first_calls.reindex()

    def _queue(self, request: ServedRequest) -> FairQueue:
        return self.in_progress if request.is_in_progress else self.first_calls

    def _waits(self, account: Account) -> bool:
        tenant = account.tenant
        return tenant in self.in_progress.queues or tenant in self.first_calls.queues
