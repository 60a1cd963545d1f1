"""A digital twin of an engine with LoRA slots: its steps, without clock, chance or model.

Requests start in order of arrival while the KV cache has room for their prompt. One whose adapter
does not run while all slots do is skipped, and later ones may pass it: the source of starvation.
A step decodes one token of every running request; the newest request leaves the batch, and waits
first, where the cache is full. Steps in which nothing changes are counted at once.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulator.llm.adapters.engines import BLOCK_TOKENS, AdapterEngine, scheduling_s
from simulator.llm.adapters.loads import AdapterLoad, AdapterRequest

HALF_BLOCK = BLOCK_TOKENS // 2
"""Tokens of its last block of the KV cache that a request leaves empty, on average."""


@dataclass(frozen=True, slots=True)
class TwinReport:
    """One run of the twin."""

    requests: int
    finished: int
    served_ratio: float
    """Tokens of the requests that were started, of those that arrived."""
    oldest_wait_s: float
    """The longest that a request waited until its start, or until the end of the run."""
    oldest_adapter: str
    tokens_per_s: float
    """Tokens of the prompts and answers of finished requests, per s."""
    loads: int
    preempted: int
    steps: int

    def starves(self, least_ratio: float, most_wait_s: float) -> bool:
        return self.served_ratio < least_ratio or self.oldest_wait_s > most_wait_s


@dataclass(slots=True)
class AdapterQueues:
    """Waiting requests by adapter; the next one in order of arrival that a slot allows."""

    queues: list[deque[AdapterRequest]]
    running: list[int]
    """Running requests of each adapter."""
    heads_running: list[tuple[int, int]] = field(default_factory=list)
    heads_blocked: list[tuple[int, int]] = field(default_factory=list)
    """First requests of adapters that run, and do not; entries may be out of date."""
    waiting: int = 0
    running_adapters: int = 0

    def add(self, request: AdapterRequest) -> None:
        self.queues[request.place].append(request)
        self.waiting += 1
        if len(self.queues[request.place]) == 1:
            self.push_head(request.place)

    def put_back(self, request: AdapterRequest) -> None:
        self.queues[request.place].appendleft(request)
        self.waiting += 1
        self.push_head(request.place)

    def push_head(self, place: int) -> None:
        if self.queues[place]:
            heads = self.heads_running if self.running[place] else self.heads_blocked
            heapq.heappush(heads, (self.queues[place][0].number, place))

    def next_request(self, slots: int) -> AdapterRequest | None:
        """Return the first request that may start; it stays in its queue."""
        running = self._first(self.heads_running, is_running=True)
        blocked = None
        if self.running_adapters < slots:
            blocked = self._first(self.heads_blocked, is_running=False)
        if running is None or (blocked is not None and blocked.number < running.number):
            return blocked
        return running

    def _first(self, heads: list[tuple[int, int]], is_running: bool) -> AdapterRequest | None:
        while heads:
            number, place = heads[0]
            queue = self.queues[place]
            if queue and queue[0].number == number and bool(self.running[place]) == is_running:
                return queue[0]
            heapq.heappop(heads)
        return None

    def start(self, request: AdapterRequest) -> None:
        place = request.place
        self.queues[place].popleft()
        self.waiting -= 1
        self.running_adapters += not self.running[place]
        self.running[place] += 1
        self.push_head(place)

    def end(self, place: int) -> bool:
        """Count one running request less; return whether it was the adapter's last."""
        self.running[place] -= 1
        if self.running[place]:
            return False
        self.running_adapters -= 1
        self.push_head(place)
        return True


@dataclass(slots=True)
class AdapterSlots:
    """Adapters in GPU memory; the one that runs no request for the longest time leaves first."""

    slots: int
    resident: set[int] = field(default_factory=set)
    idle: OrderedDict[int, None] = field(default_factory=OrderedDict)
    loads: int = 0

    def use(self, place: int) -> bool:
        """Return whether the adapter has to be loaded, and keep it while it runs."""
        if place in self.resident:
            self.idle.pop(place, None)
            return False
        if len(self.resident) >= self.slots:
            self.resident.remove(self.idle.popitem(last=False)[0])
        self.resident.add(place)
        self.loads += 1
        return True

    def release(self, place: int) -> None:
        self.idle[place] = None


@dataclass(slots=True)
class Twin:
    """One engine with its slots and adapters. `run` serves requests of one span."""

    engine: AdapterEngine
    slots: int
    adapters: Sequence[AdapterLoad]
    now_s: float = 0.0
    step: int = 0
    held_tokens: int = 0
    debt_tokens: int = 0
    """Prompt tokens of started requests that further steps have to read."""
    queues: AdapterQueues = field(init=False)
    cache: AdapterSlots = field(init=False)
    running: dict[int, AdapterRequest] = field(default_factory=dict)
    ends: list[tuple[int, int]] = field(default_factory=list)
    """Last step and number of the running requests; those preempted stay until then."""
    kv_tokens: int = field(init=False)
    max_rank: int = field(init=False)
    load_s: float = 0.0
    """Time to load adapters in the next step."""
    preempted: int = 0
    finished_tokens: int = 0
    finished: int = 0
    oldest: tuple[float, int] = (0.0, 0)

    def __post_init__(self) -> None:
        count = len(self.adapters)
        self.queues = AdapterQueues([deque() for _ in range(count)], [0] * count)
        self.cache = AdapterSlots(self.slots)
        self.max_rank = max((load.rank for load in self.adapters), default=8)
        self.kv_tokens = self.engine.cache_tokens(self.slots, self.max_rank)

    def run(self, requests: Sequence[AdapterRequest], span_s: float) -> TwinReport:
        """Serve the requests until `span_s`; raises ValueError where memory does not hold."""
        if not self.engine.starts(self.slots, self.max_rank):
            raise ValueError(
                f"slots: {self.slots} of rank {self.max_rank} leave {self.kv_tokens:,} tokens of"
                f" KV cache; {self.engine.longest_tokens:,} or more are allowed"
            )
        arrived = 0
        while self.now_s < span_s:
            while arrived < len(requests) and requests[arrived].arrival_s <= self.now_s:
                self.queues.add(requests[arrived])
                arrived += 1
            self.admit()
            next_s = requests[arrived].arrival_s if arrived < len(requests) else math.inf
            if self.running:
                self.advance(min(next_s, span_s))
            else:
                self.now_s = min(next_s, span_s)
        return self.report(requests[:arrived], span_s)

    def admit(self) -> None:
        """Start requests while a slot, the KV cache and the tokens of a step allow it."""
        budget = self.engine.step_tokens - len(self.running) - self.debt_tokens
        while budget > 0 and len(self.running) < self.engine.batch_requests:
            request = self.queues.next_request(self.slots)
            if request is None:
                break
            held = request.prompt_tokens + request.made_tokens + HALF_BLOCK
            if self.held_tokens + held + len(self.running) >= self.kv_tokens and self.running:
                break
            self.start(request, held)
            budget -= request.prompt_tokens + request.made_tokens + 1
        self.debt_tokens = max(0, -budget)

    def start(self, request: AdapterRequest, held: int) -> None:
        if request.start_s is None:
            request.start_s = self.now_s
            self.oldest = max(self.oldest, (self.now_s - request.arrival_s, request.place))
        if not self.queues.running[request.place] and self.cache.use(request.place):
            self.load_s += self.engine.load_s(self.max_rank, self.adapters[request.place].rank)
        self.queues.start(request)
        request.start_step = self.step
        self.running[request.number] = request
        self.held_tokens += held
        last = self.step + request.output_tokens - request.made_tokens
        heapq.heappush(self.ends, (last, request.number))

    def advance(self, until_s: float) -> None:
        """Make steps until a request ends, one arrives, or the cache is full."""
        self.make_room()
        batch = len(self.running)
        step_s = self.engine.step_s(batch, self.queues.running_adapters) + scheduling_s(
            batch, self.queues.waiting, self.slots / len(self.adapters)
        )
        steps = 1
        if not self.debt_tokens and self.ends:
            steps = min(
                self.ends[0][0] - self.step,
                math.ceil(max(0.0, until_s - self.now_s - self.load_s) / step_s),
                (self.kv_tokens - self.held_tokens) // batch,
            )
        steps = max(1, steps)
        self.now_s += self.load_s + steps * step_s
        self.load_s = 0.0
        self.step += steps
        self.held_tokens += steps * batch
        self.debt_tokens = max(0, self.debt_tokens - steps * self.engine.step_tokens + batch)
        while self.ends and self.ends[0][0] <= self.step:
            self.finish(*heapq.heappop(self.ends))

    def finish(self, last: int, number: int) -> None:
        request = self.running.get(number)
        if request is None or self._last_step(request) != last:
            return
        self.leave(request)
        self.finished += 1
        self.finished_tokens += request.tokens

    def make_room(self) -> None:
        """Preempt the newest requests until each running one has room for a token."""
        while self.held_tokens + len(self.running) > self.kv_tokens and len(self.running) > 1:
            request = self.running[next(reversed(self.running))]
            self.leave(request)
            request.made_tokens += self.step - request.start_step
            self.queues.put_back(request)
            self.preempted += 1

    def leave(self, request: AdapterRequest) -> None:
        del self.running[request.number]
        progress = request.made_tokens + self.step - request.start_step
        self.held_tokens -= request.prompt_tokens + progress + HALF_BLOCK
        if self.queues.end(request.place):
            self.cache.release(request.place)

    def _last_step(self, request: AdapterRequest) -> int:
        return request.start_step + request.output_tokens - request.made_tokens

    def report(self, arrived: Sequence[AdapterRequest], span_s: float) -> TwinReport:
        offered = sum(request.tokens for request in arrived)
        unserved = 0
        for queue in self.queues.queues:
            for request in queue:
                if request.start_s is None:
                    unserved += request.tokens
                    self.oldest = max(self.oldest, (span_s - request.arrival_s, request.place))
        return TwinReport(
            requests=len(arrived),
            finished=self.finished,
            served_ratio=1 - unserved / offered if offered else 1.0,
            oldest_wait_s=self.oldest[0],
            oldest_adapter=self.adapters[self.oldest[1]].adapter if arrived else "",
            tokens_per_s=self.finished_tokens / span_s,
            loads=self.cache.loads,
            preempted=self.preempted,
            steps=self.step,
        )
