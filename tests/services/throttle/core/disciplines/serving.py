"""A discipline in front of the model of a batching engine, and the service that tenants get."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass

from services.throttle.core.disciplines.cost import LINEAR, Cost
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad, ServingOrder
from simulator.llm.batching import BatchingEngine, EngineLimits

IDLE = EngineLoad(held_tokens=0, batch_tokens=1000, waiting=0)
BUSY = EngineLoad(held_tokens=950, batch_tokens=1000, waiting=3)
STEP_MS = 30


def a_request(
    request_id: str = "r", tenant: str = "a", prompt: int = 10, limit: int = 10, at: int = 0
) -> ServedRequest:
    return ServedRequest(request_id, tenant, prompt, limit, at, is_issued=True)


def served(order: ServingOrder, request: ServedRequest, tokens: int = 0) -> None:
    """Start a waiting request and end it after so many tokens."""
    order.start(request)
    request.made_tokens = tokens
    order.charge(request)
    order.finish(request)


@dataclass(slots=True)
class Offer:
    """A request, when it comes, and the length of its answer."""

    at: int
    request: ServedRequest
    length: int


@dataclass(slots=True)
class Endpoint:
    """A discipline and an engine in steps of `STEP_MS`; `each_step` runs after each."""

    discipline: Discipline
    batch_tokens: int
    cost: Cost = LINEAR
    now: int = 0
    engine: BatchingEngine[str] = field(init=False)
    requests: dict[str, ServedRequest] = field(default_factory=dict)
    waiting: int = 0
    service: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    started: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.engine = BatchingEngine(EngineLimits(self.batch_tokens))

    @property
    def load(self) -> EngineLoad:
        return EngineLoad(self.engine.held_tokens, self.batch_tokens, self.waiting)

    def serve(
        self, offers: Iterable[Offer], each_step: Callable[[Endpoint], None] = lambda _: None
    ) -> None:
        """Serve all offers to their end."""
        coming = sorted(offers, key=lambda offer: offer.at)
        lengths = {offer.request.request_id: offer.length for offer in coming}
        coming.reverse()
        while coming or self.waiting or len(self.engine):
            while coming and coming[-1].at <= self.now:
                self.offer(coming.pop().request)
            self.admit(lengths)
            each_step(self)
            self.now += STEP_MS
            if len(self.engine):
                self.step()

    def offer(self, request: ServedRequest) -> None:
        request.queued_at = self.now
        assert self.engine.can_ever_fit(request.prompt_tokens, request.max_output_tokens)
        if self.discipline.refusal(request, self.load, self.now) is not None:
            self.refused.append(request.request_id)
            return
        self.requests[request.request_id] = request
        self.discipline.enqueue(request)
        self.waiting += 1

    def admit(self, lengths: dict[str, int]) -> None:
        while (first := self.discipline.next_request()) is not None:
            if not self.engine.fits(first.prompt_tokens, first.max_output_tokens):
                return
            self.discipline.start(first, self.now)
            self.waiting -= 1
            self.started.append(first.request_id)
            self.service[first.tenant] += self.cost.of(first.prompt_tokens, 0)
            key = first.request_id
            self.engine.start(key, first.prompt_tokens, first.max_output_tokens, lengths[key])

    def step(self) -> None:
        running = list(self.engine)
        done = self.engine.step().finished
        for key in running:
            request = self.requests[key]
            before = self.cost.of(request.prompt_tokens, request.made_tokens)
            self.discipline.charge(request, 1, self.now)
            after = self.cost.of(request.prompt_tokens, request.made_tokens)
            self.service[request.tenant] += after - before
        for key in done:
            self.discipline.finish(self.requests.pop(key))


@dataclass(slots=True)
class Load:
    """A random load of one batch size; `longest_prompt` is of the prompts that were drawn."""

    batch_tokens: int
    offers: list[Offer]

    @property
    def longest_prompt(self) -> int:
        return max(offer.request.prompt_tokens for offer in self.offers)

    @property
    def u(self) -> float:
        """VTC's `U` with its prices of 1 and 2."""
        return max(self.longest_prompt, 2 * self.batch_tokens)


def random_load(seed: int, tenants: str = "ab", spread_ms: int = 0, each: int = 20) -> Load:
    """Return requests of each tenant, of a few kinds each; some end before their limit."""
    chance = random.Random(seed)
    batch_tokens = chance.randint(30, 200)
    longest = (batch_tokens - 1) // chance.randint(2, 8)
    offers = []
    for tenant in tenants:
        kinds = [
            (chance.randint(1, longest), chance.randint(1, longest))
            for _ in range(chance.randint(1, 4))
        ]
        for number in range(each):
            prompt, limit = chance.choice(kinds)
            length = limit if chance.random() < 0.5 else chance.randint(1, limit)
            at = chance.randint(0, spread_ms)
            request = a_request(f"{tenant}{number}", tenant, prompt, limit, at)
            offers.append(Offer(at, request, length))
    chance.shuffle(offers)
    return Load(batch_tokens, offers)


def plain(state: object) -> object:
    """Return the state as nested tuples, without what a replay need not give."""
    if is_dataclass(state) and not isinstance(state, type):
        return type(state).__name__, *(
            plain(getattr(state, item.name)) for item in fields(state) if item.compare
        )
    if isinstance(state, dict):
        return tuple((key, plain(value)) for key, value in state.items())
    if isinstance(state, list | tuple | deque):
        return tuple(plain(value) for value in state)
    return state
