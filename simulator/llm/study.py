"""A trace of LLM requests under one discipline, with the model of a batching engine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.request import ServedRequest
from services.throttle.core.disciplines.seam import EngineLoad
from simulator.llm.batching import BatchingEngine, EngineLimits
from simulator.llm.requests import Outcome, TraceRequest

Follow = Callable[[Outcome, float], TraceRequest | None]
"""Returns the next call of an interaction, after a call has ended or was refused at that time."""


@dataclass(slots=True)
class Study:
    """One run on a virtual clock, which jumps over the time without requests."""

    discipline: Discipline
    limits: EngineLimits = field(default_factory=EngineLimits)
    follow: Follow = lambda outcome, at_s: None
    now_s: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    engine: BatchingEngine[str] = field(init=False)
    coming: list[tuple[float, int, TraceRequest]] = field(default_factory=list)
    known: int = 0
    waiting: int = 0
    open_requests: dict[str, tuple[ServedRequest, Outcome]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = BatchingEngine(self.limits)

    def run(self, requests: Iterable[TraceRequest]) -> list[Outcome]:
        """Serve all requests to their end; raises ValueError for one that can never fit."""
        for request in requests:
            self.add(request)
        while self.coming or self.waiting or len(self.engine):
            if not self.waiting and not len(self.engine):
                self.now_s = max(self.now_s, self.coming[0][0])
            while self.coming and self.coming[0][0] <= self.now_s:
                self.offer(heapq.heappop(self.coming)[2])
            self.admit()
            if len(self.engine):
                self.step()
        return self.outcomes

    def add(self, request: TraceRequest) -> None:
        if not self.engine.can_ever_fit(request.prompt_tokens, request.output_tokens):
            raise ValueError(
                f"{request.request_id}: {request.prompt_tokens} prompt and"
                f" {request.output_tokens} output tokens do not fit a batch of"
                f" {self.limits.kv_tokens}"
            )
        heapq.heappush(self.coming, (request.arrival_s, self.known, request))
        self.known += 1

    def offer(self, request: TraceRequest) -> None:
        """Queue the request unless the discipline refuses it."""
        served, outcome = request.served(), Outcome(request)
        self.outcomes.append(outcome)
        load = EngineLoad(self.engine.held_tokens, self.limits.kv_tokens, self.waiting)
        if self.discipline.refusal(served, load, served.queued_at) is not None:
            outcome.refused = True
            self.add_follower(outcome, request.arrival_s)
            return
        self.open_requests[request.request_id] = served, outcome
        self.discipline.enqueue(served)
        self.waiting += 1

    def admit(self) -> None:
        """Start requests while the next one fits."""
        while (served := self.discipline.next_request()) is not None:
            if not self.engine.fits(served.prompt_tokens, served.max_output_tokens):
                return
            self.discipline.start(served, self.now_ms)
            self.open_requests[served.request_id][1].started_s = self.now_s
            self.engine.start(served.request_id, served.prompt_tokens, served.max_output_tokens)
            self.waiting -= 1

    def step(self) -> None:
        """Let the engine make one token for each running request, and charge it."""
        running = list(self.engine)
        step = self.engine.step()
        self.now_s += step.duration_s
        now_ms = self.now_ms
        for request_id in running:
            self.discipline.charge(self.open_requests[request_id][0], 1, now_ms)
        for request_id in step.first:
            self.open_requests[request_id][1].first_s = self.now_s
        for request_id in step.finished:
            served, outcome = self.open_requests.pop(request_id)
            outcome.finished_s = self.now_s
            self.discipline.finish(served)
            self.add_follower(outcome, self.now_s)

    def add_follower(self, outcome: Outcome, at_s: float) -> None:
        request = self.follow(outcome, at_s)
        if request is not None:
            self.add(request)

    @property
    def now_ms(self) -> int:
        return int(1000 * self.now_s)
