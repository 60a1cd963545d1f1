"""Classes of requests, the higher one first, of which none waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from services.throttle.core.disciplines.competition import Ahead, Competition, ExpectedLength
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder

MOST_PASSED = 20
"""Starts of other classes after which a waiting class is next."""


@dataclass(slots=True)
class PriorityClasses(ServingOrder):
    """An order per class; the highest class with a waiting request is served.

    `orders` begin with the highest class; a `priority` beyond the last is of the last. What a
    tenant gets in one class counts in all, so that it gains nothing by using several; the lift of
    a return from idle is that of the class.

    Bound: of `n` classes, one in which a request waits gets at least one of any
    `most_passed + n - 1` starts in a row. While two tenants wait in the highest class, one that
    uses the others too gets in all of them at most the bound of the order more, as long as most
    starts are of the highest.
    """

    orders: tuple[ServingOrder, ...]
    most_passed: int = MOST_PASSED
    waiting: list[int] = field(default_factory=list)
    """Requests that wait, by class."""
    passed: list[int] = field(default_factory=list)
    """Starts of other classes since one of this class, while a request of it waited."""

    def __post_init__(self) -> None:
        if not self.orders:
            raise ValueError("orders: a discipline needs at least one class")
        if self.most_passed < 1:
            raise ValueError(f"most_passed: {self.most_passed} is below 1")
        self.waiting = [0] * len(self.orders)
        self.passed = [0] * len(self.orders)

    def enqueue(self, request: ServedRequest) -> None:
        number = self._class_of(request)
        self.waiting[number] += 1
        self.orders[number].enqueue(request)

    def withdraw(self, request: ServedRequest) -> None:
        number = self._class_of(request)
        self._leave(number)
        self.orders[number].withdraw(request)

    def next_request(self) -> ServedRequest | None:
        waiting = [number for number, count in enumerate(self.waiting) if count]
        if not waiting:
            return None
        # The one that was passed over most; of equals, the highest.
        late = [number for number in waiting if self.passed[number] >= self.most_passed - 1]
        number = max(late, key=lambda late: (self.passed[late], -late)) if late else waiting[0]
        return self.orders[number].next_request()

    def competition(self, request: ServedRequest) -> Competition:
        number = self._class_of(request)
        competition = self.orders[number].competition(request)
        return replace(competition, first=competition.first + sum(self.waiting[:number]))

    def ahead(self, request: ServedRequest, length: ExpectedLength) -> Ahead:
        number = self._class_of(request)
        ahead = self.orders[number].ahead(request, length)
        return replace(ahead, count=ahead.count + sum(self.waiting[:number]))

    def start(self, request: ServedRequest) -> None:
        started = self._class_of(request)
        for number, count in enumerate(self.waiting):
            if count and number != started:
                self.passed[number] += 1
        self.passed[started] = 0
        self._leave(started)
        with self._counted_in_all(request) as order:
            order.start(request)

    def charge(self, request: ServedRequest) -> None:
        with self._counted_in_all(request) as order:
            order.charge(request)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        with self._counted_in_all(request) as order:
            order.settle_prompt(request, prompt_tokens)

    def finish(self, request: ServedRequest) -> None:
        with self._counted_in_all(request) as order:
            order.finish(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        for order in self.orders:
            order.set_weight(tenant, weight)

    @property
    def level(self) -> float:
        return max(order.level for order in self.orders)

    @property
    def spread(self) -> float:
        return max(order.spread for order in self.orders)

    def rebase(self) -> None:
        for order in self.orders:
            order.rebase()

    @contextmanager
    def _counted_in_all(self, request: ServedRequest) -> Iterator[ServingOrder]:
        """Yield the order of the request; what it counts for the tenant counts in the others."""
        order = self.orders[self._class_of(request)]
        before = order.counter_of(request.tenant)
        yield order
        counted = order.counter_of(request.tenant) - before
        if counted:
            for other in self.orders:
                if other is not order:
                    other.note_service(request.tenant, counted)

    def _leave(self, number: int) -> None:
        self.waiting[number] -= 1
        if not self.waiting[number]:
            self.passed[number] = 0

    def _class_of(self, request: ServedRequest) -> int:
        return min(max(request.priority, 0), len(self.orders) - 1)
