"""Accounts of the tenants of an endpoint, and the fair queues in which their requests wait."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.throttle.core.disciplines.competition import (
    Ahead,
    CompetingQueue,
    Competition,
    ExpectedLength,
    ahead_in,
)
from services.throttle.core.disciplines.cost import LINEAR
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.turns import QueueTurns, TurnProfile

MOST_STALE = 64
"""Entries of a heap, beyond two per queue, with which it is built anew."""


MOST_RUNNING = 16
"""Running requests of a tenant whose charges to come are counted; those of more are equal ones."""

SENT_MEMORY = 0.97
"""Part of the weight of what a tenant sent that one more start leaves: about 33 starts count."""

STALE_PART = 2
"""A profile of turns is counted anew after one more request for so many queues."""

Entry = tuple[float, int, str]
"""A counter, when the first request was queued, and the tenant."""


@dataclass(slots=True, eq=False)
class Account:
    """The service that a tenant got on this endpoint, per weight: its counter."""

    tenant: str
    weight: float = 1.0
    counter: float = 0.0
    forecast_cost: float = 0.0
    """Charged at the start for output that requests still running may make."""
    sent: float = 0.0
    """Requests that it sent, of which older ones weigh less: see `sent_per_start`."""
    sent_at: int = 0
    """The number of starts at its last one."""
    running: dict[str, ServedRequest] = field(default_factory=dict)
    """Its requests that run, by id, where the order charges their output as it is made."""

    def note_sent(self, starts: int) -> None:
        """Count a request that is sent after so many starts of any tenant."""
        self.sent = self.sent * SENT_MEMORY ** (starts - self.sent_at) + 1.0
        self.sent_at = starts

    def sent_per_start(self, starts: int) -> float:
        """Return how many requests it sends while one of any tenant is started."""
        return self.sent * SENT_MEMORY ** (starts - self.sent_at) * (1 - SENT_MEMORY)

    def charge(self, cost: float) -> None:
        """Add a cost to the counter; a refund is negative."""
        self.counter += cost / self.weight


@dataclass(slots=True)
class Accounts:
    """The accounts by tenant, of registered ones: an unknown one has weight 1 and counter 0."""

    by_tenant: dict[str, Account] = field(default_factory=dict)

    def of(self, tenant: str) -> Account:
        account = self.by_tenant.get(tenant)
        if account is None:
            account = self.by_tenant[tenant] = Account(tenant)
        return account

    def rebase(self, amount: float) -> None:
        """Lower all counters by the same."""
        for account in self.by_tenant.values():
            account.counter -= amount


@dataclass(slots=True, eq=False)
class TenantQueue:
    """The waiting requests of one tenant in one fair queue."""

    account: Account
    requests: deque[ServedRequest] = field(default_factory=deque)
    prompt_tokens: int = 0
    """Those of all its requests."""
    output_limits: int = 0
    entry: Entry = field(default=(0.0, 0, ""), compare=False, repr=False)
    """Its valid entry in the heap of its fair queue; any other is to be thrown away."""

    @property
    def key(self) -> Entry:
        """Return where it stands in the order of its fair queue."""
        account = self.account
        return account.counter, self.requests[0].queued_at, account.tenant

    def turns(self, level: float, length: ExpectedLength) -> QueueTurns:
        """Return its turns above a level, as if its requests were equal."""
        count, account = len(self.requests), self.account
        tokens = self.expected_tokens(length)
        step = max(LINEAR.of(self.prompt_tokens, tokens), 1.0) / count / account.weight
        tokens /= count
        return QueueTurns(account.tenant, account.counter - level, step, count, tokens)

    def expected_tokens(self, length: ExpectedLength) -> float:
        """Return the expected output of all its requests, by that of the first."""
        expected = length(self.requests[0]) * len(self.requests)
        return max(min(expected, float(self.output_limits)), 1.0)

    def add(self, request: ServedRequest) -> None:
        self.requests.append(request)
        self.prompt_tokens += request.prompt_tokens
        self.output_limits += request.max_output_tokens

    def remove(self, request: ServedRequest) -> None:
        self.requests.remove(request)
        self.prompt_tokens -= request.prompt_tokens
        self.output_limits -= request.max_output_tokens

    def competing(self, starts: int) -> CompetingQueue:
        return competing(self.account, self.account.counter, self.requests, starts)


@dataclass(slots=True)
class FairQueue:
    """Queues of tenants; the one with the smallest counter is at the front.

    Ties go by the arrival of the first request, then by the tenant's name. Queues are found by a
    heap. Each has one valid entry, which is at most its key: a key that has grown since is
    corrected when its entry comes to the top, one that has shrunk gets another entry. To find the
    front costs O(log n) for n tenants, where a scan would cost O(n). The heap follows from the
    queues, and is no part of the state that a replay gives.
    """

    queues: dict[str, TenantQueue] = field(default_factory=dict)
    heap: list[Entry] = field(default_factory=list, compare=False, repr=False)
    waiting: int = 0
    """Requests in the fair queue."""
    appended: int = 0
    """Requests that were ever in the fair queue."""
    profile: tuple[int, TurnProfile] | None = field(default=None, compare=False, repr=False)
    """The turns of all queues, and `appended` when they were counted."""

    def ahead(
        self, account: Account, counter: float, length: ExpectedLength, most_named: int
    ) -> Ahead:
        """Return what goes before a new request of an account; names the requests if few wait."""
        if len(self.queues) <= most_named and self.waiting <= most_named:
            return ahead_in(self.competition(account, counter), length)
        front = self.front()
        level = front.account.counter if front is not None else counter
        own = self.queues.get(account.tenant)
        count, tokens = 0.0, 0.0
        if own is not None:
            count, tokens = float(len(own.requests)), own.expected_tokens(length)
            counter += LINEAR.of(own.prompt_tokens, tokens) / account.weight
        turns = self._turns(level, length).before(counter - level, account.tenant)
        return Ahead(round(count + turns.requests), tokens=tokens + turns.tokens)

    def _turns(self, level: float, length: ExpectedLength) -> TurnProfile:
        """Return the profile; it is counted anew when a part of the queues may have changed."""
        if self.profile is None or self.appended - self.profile[0] > len(self.queues) // STALE_PART:
            queues = (queue.turns(level, length) for queue in self.queues.values())
            self.profile = self.appended, TurnProfile.of(queues)
        return self.profile[1]

    def append(self, account: Account, request: ServedRequest) -> None:
        queue = self.queues.get(account.tenant)
        if queue is None:
            queue = self.queues[account.tenant] = TenantQueue(account)
            queue.add(request)
            self._index(queue)
        else:
            queue.add(request)
        account.note_sent(self.appended - self.waiting)
        self.waiting += 1
        self.appended += 1

    def remove(self, request: ServedRequest) -> bool:
        """Take a request out of the fair queue; return whether its tenant has no other in it.

        One that is served is the first of its queue.
        """
        queue = self.queues[request.tenant]
        queue.remove(request)
        self.waiting -= 1
        if not queue.requests:
            del self.queues[request.tenant]
            return True
        if queue.requests[0].queued_at < queue.entry[1]:
            self._index(queue)
        return False

    def refund(self, account: Account, cost: float) -> None:
        """Subtract a cost from an account, whose queue may come to the front by it."""
        account.charge(-cost)
        queue = self.queues.get(account.tenant)
        if queue is not None and account.counter < queue.entry[0]:
            self._index(queue)

    def front(self) -> TenantQueue | None:
        """Return the queue of the smallest counter; None if no request waits."""
        heap, queues = self.heap, self.queues
        while heap:
            entry = heap[0]
            queue = queues.get(entry[2])
            if queue is None or queue.entry is not entry:
                heapq.heappop(heap)
            elif entry[0] == queue.account.counter and entry[1] == queue.requests[0].queued_at:
                return queue
            else:
                queue.entry = queue.key
                heapq.heapreplace(heap, queue.entry)
        return None

    @property
    def spread(self) -> float:
        """The largest counter in the fair queue, less the smallest."""
        counters = [queue.account.counter for queue in self.queues.values()]
        return max(counters) - min(counters) if counters else 0.0

    def first_request(self) -> ServedRequest | None:
        front = self.front()
        return front.requests[0] if front else None

    def near_front(self, slack: float, most: int) -> list[TenantQueue]:
        """Return queues in their order: counters at most `slack` above that of the front."""
        near: list[TenantQueue] = []
        entries: list[Entry] = []
        while len(near) < most and (queue := self.front()) is not None:
            if near and queue.account.counter > near[0].account.counter + slack:
                break
            near.append(queue)
            entries.append(heapq.heappop(self.heap))
        for entry in entries:
            heapq.heappush(self.heap, entry)
        return near

    def competition(self, account: Account, counter: float, first: int = 0) -> Competition:
        """Return the queues that a new request of the account competes with in this fair queue."""
        own = self.queues.get(account.tenant)
        starts = self.appended - self.waiting
        others = [queue.competing(starts) for queue in self.queues.values() if queue is not own]
        requests = tuple(own.requests) if own is not None else ()
        return Competition(competing(account, counter, requests), others, first)

    def reindex(self) -> None:
        """Build the heap anew, after a change of many counters."""
        for queue in self.queues.values():
            queue.entry = queue.key
        self.heap = [queue.entry for queue in self.queues.values()]
        heapq.heapify(self.heap)

    def _index(self, queue: TenantQueue) -> None:
        """Enter the queue: it is new, or its key has shrunk."""
        if len(self.heap) > 2 * len(self.queues) + MOST_STALE:
            self.reindex()
        else:
            queue.entry = queue.key
            heapq.heappush(self.heap, queue.entry)


def competing(
    account: Account, counter: float, requests: Sequence[ServedRequest], starts: int | None = None
) -> CompetingQueue:
    """Return the queue of an account as one that competes; without `starts` it sends no more."""
    sent = 0.0 if starts is None else account.sent_per_start(starts)
    running = tuple(account.running.values()) if len(account.running) <= MOST_RUNNING else ()
    return CompetingQueue(counter, account.weight, requests, sent, running)


def lift(account: Account, queues: tuple[FairQueue, ...], last_emptied: Account | None) -> None:
    """Raise the counter of a tenant that joins from idle, since idle time gives no credit.

    It becomes at least that of the account at the front or, when no tenant waits, that of the
    account whose queue became empty last (the branch of algorithm 2 of the VTC paper that its
    published code leaves out).
    """
    account.counter = max(account.counter, level(queues, last_emptied, account.counter))


def level(
    queues: tuple[FairQueue, ...], last_emptied: Account | None, otherwise: float = 0.0
) -> float:
    """Return the smallest counter of a waiting tenant, else of the one that waited last."""
    fronts = [front.account.counter for queue in queues if (front := queue.front()) is not None]
    if fronts:
        return min(fronts)
    return last_emptied.counter if last_emptied is not None else otherwise
