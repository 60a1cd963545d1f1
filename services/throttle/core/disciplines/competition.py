"""The queues that a request competes with, as an estimate of its wait needs them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.request import ServedRequest

MOST_QUEUES = 64
"""Queues that are merged request by request; with more, only the number ahead is estimated."""

MOST_AHEAD = 64
"""Requests ahead that are named one by one."""

ExpectedLength = Callable[[ServedRequest], float]
"""Output tokens that a waiting request will probably make."""


@dataclass(frozen=True, slots=True)
class CompetingQueue:
    """Waiting requests that are served in their order; the lowest counter goes next."""

    counter: float
    weight: float
    requests: Sequence[ServedRequest]
    sent_per_start: float = 0.0
    """Requests that its tenant sends while one request of any tenant is started."""
    running: Sequence[ServedRequest] = ()
    """Requests of its tenant whose output is not all charged yet, or not all made."""

    def begin(self, length: ExpectedLength) -> float:
        """Return the counter once what runs is charged as it is expected to end.

        A tenant whose long answers run is charged for them while the queues take turns; one that
        was charged ahead for more than its answers make gets the rest back.
        """
        due = 0.0
        for request in self.running:
            tokens = max(length(request), float(request.made_tokens))
            due += LINEAR.of(0, tokens - request.charged_tokens)
        return self.counter + due / self.weight


@dataclass(frozen=True, slots=True)
class Competition:
    """The requests between a request and its start.

    `own` holds the requests of its queue that are before it, `others` the other queues, `first` is
    the number of requests that go before all of them.
    """

    own: CompetingQueue
    others: Sequence[CompetingQueue] = ()
    first: int = 0


@dataclass(frozen=True, slots=True)
class Ahead:
    """The number of requests that are served before one, and the first of them in their order."""

    count: int
    requests: Sequence[ServedRequest] = field(default=())
    """Named where they are few."""
    coming: int = 0
    """How many of them are not there yet: their tenants send on, and will be before it."""
    tokens: float | None = None
    """Output that is expected of all, where it is known and they are not named."""


def ahead_in(competition: Competition, length: ExpectedLength) -> Ahead:
    """Return the requests ahead: queues take turns by counters that grow by expected costs.

    Of more than `MOST_AHEAD`, the number is estimated as if queues took turns evenly.
    """
    own, others, first = competition.own, competition.others, competition.first
    requests: list[ServedRequest] = []
    coming = 0
    if len(others) < MOST_QUEUES:
        requests, coming, is_complete = _merge(own, others, length)
        if is_complete:
            return Ahead(first + len(requests), requests, coming)
    turns = (len(own.requests) + 1) * (len(others) + 1) - 1
    waiting = len(own.requests) + sum(len(queue.requests) for queue in others)
    return Ahead(first + max(len(requests), min(turns, waiting) + coming), requests, coming)


def _merge(
    own: CompetingQueue, others: Sequence[CompetingQueue], length: ExpectedLength
) -> tuple[list[ServedRequest], int, bool]:
    """Return the requests before the end of the own queue, those to come, and whether it is all.

    A tenant that has sent while others were served is expected to go on: behind its queue comes
    another request like those before, as soon as it would have sent that.
    """
    queues = [own, *others]
    heap = [
        (queue.begin(length), _queued_at(queue, 0), number, 0)
        for number, queue in enumerate(queues)
    ]
    heapq.heapify(heap)
    later: list[tuple[float, float, int, int]] = []
    ahead: list[ServedRequest] = []
    coming, level = 0, own.counter
    while heap and len(ahead) < MOST_AHEAD:
        while later and later[0][0] <= len(ahead):
            _, counter, number, position = heapq.heappop(later)
            heapq.heappush(heap, (max(counter, level), math.inf, number, position))
        counter, queued_at, number, position = heapq.heappop(heap)
        queue, level = queues[number], counter
        known = len(queue.requests)
        if position >= known:
            if queue is own:
                return ahead, coming, True
            due = (
                (position - known + 1) / queue.sent_per_start if queue.sent_per_start else math.inf
            )
            if due > len(ahead):
                if known and due < MOST_AHEAD:
                    heapq.heappush(later, (due, counter, number, position))
                continue
            coming += 1
        request = queue.requests[position % known]
        ahead.append(request)
        cost = LINEAR.of(request.prompt_tokens, length(request))
        counter += cost / queue.weight
        queued_at = _queued_at(queue, position + 1)
        heapq.heappush(heap, (counter, queued_at, number, position + 1))
    return ahead, coming, False


def _queued_at(queue: CompetingQueue, position: int) -> float:
    """Return the arrival of a request; the new request is the last to arrive."""
    is_end = position >= len(queue.requests)
    return math.inf if is_end else queue.requests[position].queued_at
