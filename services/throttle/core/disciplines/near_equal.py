"""A choice among tenants with nearly equal counters: by deadline, or by cached prefixes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from services.throttle.core.disciplines.bounded_table import BoundedTable
from services.throttle.core.disciplines.competition import Ahead, Competition, ExpectedLength
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import ServingOrder
from services.throttle.core.disciplines.vtc import Vtc

MOST_COMPARED = 16
"""Tenants that are compared for one start, so that it costs the same with any number of them."""


class Preference(Protocol):
    """The choice of the request that is better served now."""

    def penalty(self, request: ServedRequest) -> float:
        """Return a number that is smaller for a better request."""

    def note_started(self, request: ServedRequest) -> None:
        """Learn that a request was started."""


@dataclass(slots=True)
class EarliestDeadline:
    """The request with the first token due earliest, also if it is late; others afterwards."""

    def penalty(self, request: ServedRequest) -> float:
        return math.inf if request.first_token_by is None else float(request.first_token_by)

    def note_started(self, request: ServedRequest) -> None:
        """Learn nothing."""


@dataclass(slots=True)
class LongestPrefix:
    """The request of whose prompt the engine probably has the most blocks in its cache.

    Which are there is not reported; those of the requests that were started last are taken to be.
    `capacity` of `cached` is the number of blocks that the engine's cache holds.
    """

    cached: BoundedTable[str, bool] = field(default_factory=BoundedTable)

    def penalty(self, request: ServedRequest) -> float:
        for count, block in enumerate(request.prefix):
            if self.cached.get(block) is None:
                return -float(count)
        return -float(len(request.prefix))

    def note_started(self, request: ServedRequest) -> None:
        for block in reversed(request.prefix):
            self.cached.touch(block, lambda: True)


@dataclass(slots=True)
class NearEqual(ServingOrder):
    """VTC, but of the tenants within `slack` of the smallest counter the preferred is next.

    The first preference counts; a later one where those before are equal, then the counters.

    Bound: that of `Vtc` with `F + slack` for `F`: a tenant that is served had at most `slack` more
    than any that waited. So a tenant that is never preferred waits until the others are that far
    ahead. (The same idea as in DLPM, arXiv 2501.14312, with counters for deficits.)
    """

    order: Vtc
    preferences: tuple[Preference, ...]
    slack: float

    def __post_init__(self) -> None:
        if not self.slack >= 0:
            raise ValueError(f"slack: {self.slack} units is below 0")

    def enqueue(self, request: ServedRequest) -> None:
        self.order.enqueue(request)

    def withdraw(self, request: ServedRequest) -> None:
        self.order.withdraw(request)

    def next_request(self) -> ServedRequest | None:
        queues = self.order.queue.near_front(self.slack, MOST_COMPARED)
        # The queues come in the order of their counters, and `min` returns the first of equals.
        return min((queue.requests[0] for queue in queues), key=self._penalties, default=None)

    def competition(self, request: ServedRequest) -> Competition:
        return self.order.competition(request)

    def ahead(self, request: ServedRequest, length: ExpectedLength) -> Ahead:
        return self.order.ahead(request, length)

    def start(self, request: ServedRequest) -> None:
        self.order.start(request)
        for preference in self.preferences:
            preference.note_started(request)

    def charge(self, request: ServedRequest) -> None:
        self.order.charge(request)

    def settle_prompt(self, request: ServedRequest, prompt_tokens: int) -> None:
        self.order.settle_prompt(request, prompt_tokens)

    def finish(self, request: ServedRequest) -> None:
        self.order.finish(request)

    def set_weight(self, tenant: str, weight: float) -> None:
        self.order.set_weight(tenant, weight)

    def counter_of(self, tenant: str) -> float:
        return self.order.counter_of(tenant)

    def note_service(self, tenant: str, counted: float) -> None:
        self.order.note_service(tenant, counted)

    @property
    def level(self) -> float:
        return self.order.level

    @property
    def spread(self) -> float:
        return self.order.spread

    def rebase(self) -> None:
        self.order.rebase()

    def _penalties(self, request: ServedRequest) -> tuple[float, ...]:
        return tuple(preference.penalty(request) for preference in self.preferences)
