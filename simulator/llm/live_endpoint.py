"""The live decider of an endpoint on a virtual clock, before the model of a batching engine."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from services.throttle.core.decide import Throttle
from services.throttle.core.state import EndpointState
from shared.contracts.base import Event, Model
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import (
    CapacityObserved,
    EngineAdvanced,
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
    RequestEnd,
    RequestsEnded,
    ServeLlmRequest,
    TokensMade,
)
from shared.ledger.decider import Fact, Input
from simulator.llm.batching import BatchingEngine, EngineLimits
from simulator.llm.requests import TraceRequest

REPORT_MS = 1000
"""Period of the reports of output, as in the live service."""

UNLIMITED_KV = 10**9


@dataclass(slots=True)
class EstimatedWait:
    """The wait of one request as it was estimated at its arrival, and as it was, s."""

    request_id: str
    tenant: str
    estimated_s: float
    ahead: int
    waited_s: float = -1.0
    """Negative while it waits."""


@dataclass(slots=True)
class LiveEndpoint:
    """An endpoint whose engine runs `slots` requests at once; every request is served."""

    settings: EndpointConfigured
    slots: int
    follow: Callable[[str, float], TraceRequest | None] = lambda tenant, at_s: None
    """Returns what a tenant sends when one of its requests has ended."""
    limits_are_lengths: bool = False
    """Whether the limit of a request is the length of its answer, else that of the endpoint."""
    throttle: Throttle = field(default_factory=Throttle)
    state: EndpointState = field(init=False)
    engine: BatchingEngine[str] = field(init=False)
    now_ms: float = 0.0
    reported_ms: float = 0.0
    waits: dict[str, EstimatedWait] = field(default_factory=dict)
    rejected: list[LlmRequestRejected] = field(default_factory=list)
    finished: list[LlmRequestFinished] = field(default_factory=list)
    requests: dict[str, TraceRequest] = field(default_factory=dict)
    reported: dict[str, int] = field(default_factory=dict)
    coming: list[tuple[float, int, TraceRequest]] = field(default_factory=list)
    expected: int = 0
    seq: int = 0

    def __post_init__(self) -> None:
        self.engine = BatchingEngine(EngineLimits(UNLIMITED_KV, self.slots))
        self.state = self.throttle.initial(self.settings.partition)
        self._fold(self.settings)

    def run(
        self, requests: Iterable[TraceRequest], is_over: Callable[[], bool] = lambda: False
    ) -> Sequence[EstimatedWait]:
        """Serve the requests, in the order of their arrival; return the waits of those started."""
        for request in requests:
            self._expect(request)
        for tenant in sorted({request.tenant for _, _, request in self.coming}):
            self._fold(TenantNoted(tenant=tenant))
        self._decide(CapacityObserved(requests=self.slots))
        self.serve(is_over)
        return [wait for wait in self.waits.values() if wait.waited_s >= 0]

    def serve(self, is_over: Callable[[], bool]) -> None:
        """Serve on, until it is over or nothing is left to serve."""
        while not is_over() and (self.coming or self.state.waiting or len(self.engine)):
            if not len(self.engine) and self.coming:
                self.now_ms = max(self.now_ms, 1000 * self.coming[0][0])
            while self.coming and 1000 * self.coming[0][0] <= self.now_ms:
                self._offer(heapq.heappop(self.coming)[2])
            if len(self.engine):
                self._step()

    def _expect(self, request: TraceRequest) -> None:
        self.expected += 1
        heapq.heappush(self.coming, (request.arrival_s, self.expected, request))

    def _offer(self, request: TraceRequest) -> None:
        self.requests[request.request_id] = request
        self._decide(
            ServeLlmRequest(
                request_id=request.request_id,
                tenant=request.tenant,
                endpoint=self.settings.endpoint,
                application=request.application,
                prompt_tokens=request.prompt_tokens,
                max_output_tokens=request.output_tokens
                if self.limits_are_lengths
                else self.settings.output_limit,
            ),
            tenant=request.tenant,
        )

    def _step(self) -> None:
        """Let the engine make a token for each request; report each second, and ends at once.

        As the live service does while requests wait, the output of all is reported with an end.
        """
        step = self.engine.step()
        self.now_ms += 1000 * step.duration_s
        if step.finished or self.now_ms - self.reported_ms >= REPORT_MS:
            self._report()
        if step.finished:
            ends = tuple(self._end(request_id) for request_id in step.finished)
            self._decide(RequestsEnded(ends=ends))

    def _report(self) -> None:
        self._decide(EngineAdvanced(made=self._take_reports()))

    def _take_reports(self) -> tuple[TokensMade, ...]:
        """Return what each request has made since its last report."""
        self.reported_ms = self.now_ms
        reports: list[TokensMade] = []
        for request_id in self.engine:
            tokens = self.engine.made_tokens(request_id)
            new_tokens = tokens - self.reported.get(request_id, 0)
            self.reported[request_id] = tokens
            reports.append(TokensMade(request_id=request_id, tokens=new_tokens))
        return tuple(reports)

    def _end(self, request_id: str) -> RequestEnd:
        request = self.requests.pop(request_id)
        self.reported.pop(request_id, None)
        return RequestEnd(
            request_id=request_id,
            outcome="completed",
            output_tokens=request.output_tokens,
            prompt_tokens=request.prompt_tokens,
        )

    def _decide(self, message: Model, tenant: str = "") -> None:
        self.seq += 1
        item = Input("local", f"input-{self.seq}", message, tenant=tenant)
        for decision in self.throttle.decide(self.state, [item], int(self.now_ms)):
            self._fold(decision.event, decision.cause)

    def _fold(self, event: Event, cause: str = "") -> None:
        self.seq += 1
        fact = Fact(event, "throttle", 0, self.seq, 0, int(self.now_ms), cause)
        self.throttle.evolve(self.state, fact)
        match event:
            case LlmRequestQueued():
                wait = EstimatedWait(
                    event.request_id, event.tenant, event.wait_s or 0.0, event.ahead
                )
                self.waits[event.request_id] = wait
            case LlmRequestStarted():
                self.waits[event.request_id].waited_s = event.waited_ms / 1000
                request = self.requests[event.request_id]
                self.engine.start(
                    event.request_id, request.prompt_tokens, max(request.output_tokens, 1)
                )
            case LlmRequestRejected():
                self.rejected.append(event)
            case LlmRequestFinished():
                self.finished.append(event)
                following = self.follow(event.tenant, self.now_ms / 1000)
                if following is not None:
                    self._expect(following)
