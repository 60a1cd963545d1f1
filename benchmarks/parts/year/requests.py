"""Hours of an LLM endpoint: its live decider before the model of an engine, with its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256

from shared.bus.logs.memory import MemoryBroker
from shared.contracts.base import Event, Model
from shared.contracts.endpoints import EndpointConfigured
from shared.contracts.llm import EngineAdvanced, RequestEnd, RequestsEnded
from shared.ledger.decider import Fact
from shared.ledger.record import Position
from shared.telemetry.trace_ids import for_event, new_traceparent
from simulator.engine.ledgers import Ledgers
from simulator.engine.world import BEGIN
from simulator.llm.live_endpoint import REPORT_MS, LiveEndpoint
from simulator.llm.traces import servegen_requests

MODEL = "org/Year-7B"
SLOTS, TENANTS = 64, 20
ID_CHARS = 20


@dataclass(slots=True)
class RecordedEndpoint(LiveEndpoint):
    """A live endpoint that writes its decisions as records, as its dispatcher has them.

    Ends wait for the report of a second, unless a request waits for a place.
    """

    ledgers: Ledgers = field(default_factory=lambda: Ledgers(MemoryBroker()))
    records: int = 0
    pending: list[Fact] = field(default_factory=list)
    traces: dict[str, str] = field(default_factory=dict)
    """Of each request, as its client began it."""
    ends: list[RequestEnd] = field(default_factory=list)

    def _step(self) -> None:
        step = self.engine.step()
        self.now_ms += 1000 * step.duration_s
        self.ends += [self._end(request_id) for request_id in step.finished]
        is_due = self.now_ms - self.reported_ms >= REPORT_MS or not len(self.engine)
        if is_due or (self.ends and self.state.waiting):
            self._report()
            if self.ends:
                ends, self.ends = self.ends, []
                LiveEndpoint._decide(self, RequestsEnded(ends=tuple(ends)))
            self._append()

    def _report(self) -> None:
        """Take in what was made, for the record that is appended with the ends."""
        if reports := self._take_reports():
            LiveEndpoint._decide(self, EngineAdvanced(made=reports))

    def _decide(self, message: Model, tenant: str = "") -> None:
        LiveEndpoint._decide(self, message, tenant)
        self._append()

    def _append(self) -> None:
        if self.pending:
            vector: dict[str, Position] = {"access-0": (1, 1, "access-0-1"), "llm.requests-0": 0}
            self.ledgers.record("throttle", self.pending, vector)
            self.records += 1
            self.pending.clear()

    def _fold(self, event: Event, cause: str = "") -> None:
        LiveEndpoint._fold(self, event, cause)
        place = (self.records + 1, len(self.pending), int(self.now_ms))
        self.pending.append(Fact(event, "throttle", 0, *place, cause, self._trace_of(event)))

    def _trace_of(self, event: Event) -> str:
        """Return a span in the trace of the event's request; reports of output have none."""
        request_id: str = getattr(event, "request_id", "")
        if not request_id:
            return ""
        return for_event(event.TYPE, self.traces.setdefault(request_id, new_traceparent()))


def play_endpoint(hours: float, per_s: float, seed: int = 0) -> tuple[MemoryBroker, int]:
    """Serve so many hours of requests; return the ledger, and the number of requests."""
    span_s = 3600 * hours
    drawn = servegen_requests(seed, TENANTS, span_s, per_s)
    if not drawn:
        raise ValueError(f"llm_hours: {hours:g} at {per_s:g} requests per s give no request")
    requests = [
        replace(r, arrival_s=BEGIN / 1000 + r.arrival_s, request_id=_live_id(r.request_id))
        for r in drawn
    ]
    settings = EndpointConfigured(endpoint=MODEL, partition=0)
    endpoint = RecordedEndpoint(settings, SLOTS, now_ms=float(BEGIN))
    endpoint.run(requests)
    return endpoint.ledgers.broker, len(requests)


def _live_id(request_id: str) -> str:
    """Return an id of the form of those that the proxy gives."""
    return sha256(request_id.encode()).hexdigest()[:ID_CHARS]
