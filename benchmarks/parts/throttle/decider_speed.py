"""Requests per CPU second of the whole decider: decisions and folds, without HTTP and broker."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    CapacityObserved,
    LlmRequestStarted,
    RequestEnd,
    RequestsEnded,
    ServeLlmRequest,
)
from shared.ledger.decider import Decision, Fact, Input

MODEL = "org/Bench-7B"
PLACES = 64
BATCH = 32
"""Inputs of one round."""
ROUNDS = 5


class DecidedLane:
    """One endpoint whose decisions are folded at once, as a lane does."""

    def __init__(self, tenants: int) -> None:
        self.decider = Throttle()
        self.state: EndpointState = self.decider.initial(0)
        self._at = 1
        self._fold(EndpointConfigured(endpoint=MODEL, partition=0, queue_limit=10_000))
        for number in range(tenants):
            self._fold(TenantNoted(tenant=f"t{number:05d}", active=True))
        self.decide([Input("local", "c", CapacityObserved(requests=PLACES))])

    def decide(self, inputs: Sequence[Input]) -> list[str]:
        """Decide the inputs of one round; returns the ids of the requests that it starts."""
        started: list[str] = []
        self._at += 1
        for decision in self._decisions(inputs):
            if isinstance(decision.event, LlmRequestStarted):
                started.append(decision.event.request_id)
        return started

    def _decisions(self, inputs: Sequence[Input]) -> Iterator[Decision]:
        for decision in self.decider.decide(self.state, inputs, self._at):
            self._apply(decision)
            yield decision

    def _apply(self, decision: Decision) -> None:
        fact = Fact(decision.event, "throttle", 0, self._at, 0, self._at, decision.cause, "")
        self.decider.evolve(self.state, fact)

    def _fold(self, event: EndpointConfigured | TenantNoted) -> None:
        self.decider.evolve(self.state, Fact(event, "throttle", 0, 1, 0, self._at, "", ""))


def requests_per_s(tenants: int, requests: int) -> float:
    """Return requests per CPU second, the median of rounds, with a queue before the engine.

    Each is queued, started and settled, and folded each time.
    """
    lane = DecidedLane(tenants)
    running = lane.decide([_request(number, number % tenants) for number in range(2 * tenants)])
    rates, first = [], 2 * tenants
    for _ in range(ROUNDS):
        inputs = [_request(first + n, n % tenants) for n in range(requests)]
        first += requests
        began_s = time.process_time()
        for start in range(0, requests, BATCH):
            batch = inputs[start : start + BATCH]
            ended, running = running[: len(batch)], running[len(batch) :]
            running += lane.decide([*batch, _ends(ended)])
        rates.append(requests / (time.process_time() - began_s))
    return round(sorted(rates)[ROUNDS // 2])


def _request(number: int, tenant: int) -> Input:
    name = f"t{tenant:05d}"
    command = ServeLlmRequest(
        request_id=f"r{number}",
        tenant=name,
        endpoint=MODEL,
        interaction=f"r{number}",
        prompt_tokens=50 + number % 400,
        max_output_tokens=200,
    )
    return Input("local", f"i{number}", command, tenant=name)


def _ends(request_ids: Sequence[str]) -> Input:
    ends = tuple(
        RequestEnd(request_id=id_, outcome="completed", output_tokens=100, prompt_tokens=60)
        for id_ in request_ids
    )
    return Input("local", "e", RequestsEnded(ends=ends))
