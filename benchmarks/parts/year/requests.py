"""Hours of an LLM endpoint: its live decider before the model of an engine, with its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shared.bus.memory import MemoryBroker
from shared.contracts.base import Event, Model
from shared.contracts.endpoints import EndpointConfigured
from shared.ledger.decider import Fact
from shared.ledger.record import Position
from shared.telemetry.trace_ids import new_traceparent
from simulator.engine.ledgers import Ledgers
from simulator.engine.world import BEGIN
from simulator.llm.live_endpoint import LiveEndpoint
from simulator.llm.traces import servegen_requests

MODEL = "org/Year-7B"
SLOTS, TENANTS = 64, 20


@dataclass(slots=True)
class RecordedEndpoint(LiveEndpoint):
    """A live endpoint that writes each of its decisions as a record."""

    ledgers: Ledgers = field(default_factory=lambda: Ledgers(MemoryBroker()))
    records: int = 0
    pending: list[Fact] = field(default_factory=list)

    def _decide(self, message: Model, tenant: str = "") -> None:
        LiveEndpoint._decide(self, message, tenant)
        if self.pending:
            vector: dict[str, Position] = {"access-0": (1, 1, "access-0-1"), "llm.requests-0": 0}
            self.ledgers.record("throttle", self.pending, vector)
            self.records += 1
            self.pending.clear()

    def _fold(self, event: Event, cause: str = "") -> None:
        LiveEndpoint._fold(self, event, cause)
        place = (self.records + 1, len(self.pending), int(self.now_ms))
        trace = new_traceparent() if cause else ""
        self.pending.append(Fact(event, "throttle", 0, *place, cause, trace))


def play_endpoint(hours: float, per_s: float, seed: int = 0) -> tuple[MemoryBroker, int]:
    """Serve so many hours of requests; return the ledger, and the number of requests."""
    span_s = 3600 * hours
    drawn = servegen_requests(seed, TENANTS, span_s, per_s)
    if not drawn:
        raise ValueError(f"llm_hours: {hours:g} at {per_s:g} requests per s give no request")
    requests = [replace(r, arrival_s=BEGIN / 1000 + r.arrival_s) for r in drawn]
    settings = EndpointConfigured(endpoint=MODEL, partition=0)
    endpoint = RecordedEndpoint(settings, SLOTS, now_ms=float(BEGIN))
    endpoint.run(requests)
    return endpoint.ledgers.broker, len(requests)
