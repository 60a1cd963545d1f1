"""An LLM request runs once, after its reservation, and is settled once, within it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from typing import ClassVar

from shared.ledger.recent_ids import CAPACITY
from shared.projections.ledger_events import LedgerEvent, Payload
from shared.verify.llm_budgets import money_prices
from shared.verify.rules import Violation


@dataclass(slots=True)
class OpenLlmRequest:
    """A request between its reservation and its end."""

    queued: Payload
    is_running: bool = False
    made_tokens: int = 0


@dataclass(slots=True)
class LlmLane:
    """The requests of one partition of the ledger."""

    open: dict[str, OpenLlmRequest] = field(default_factory=dict)
    """By request id, which is that of one tenant as long as it is open."""
    accepted: dict[str, bool] = field(default_factory=dict)
    """The requests that were queued last, in that order, and whether each was started."""
    settings: Payload = field(default_factory=dict)
    """Settings of the endpoint, also of one that was deleted."""

    def accept(self, key: str) -> None:
        self.accepted.setdefault(key, False)
        if len(self.accepted) > CAPACITY:
            del self.accepted[next(iter(self.accepted))]

    def cost_of(self, data: Payload) -> float:
        """Return the money for a settled request."""
        per_request, per_prompt, per_output = money_prices(self.settings)
        tokens = per_prompt * data["prompt_tokens"] + per_output * data["output_tokens"]
        return float(per_request + tokens)


@dataclass(slots=True)
class LlmLifecycleRule:
    """Replays the requests of each endpoint.

    Output beyond the reserved limit is that of an engine that did not keep it, and a violation.
    The prompt is settled as the engine counts it, which may be more than was estimated for it.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ("lanes",)
    LEDGERS: ClassVar[tuple[str, ...]] = ("throttle",)
    name: str = "an LLM request runs once, after its reservation, and is settled once, within it"
    lanes: dict[int, LlmLane] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger != "throttle":
            return
        lane = self.lanes.setdefault(event.partition, LlmLane())
        match event.type:
            case "llm.queued.v1":
                self._queue(event, lane)
            case "llm.started.v1":
                self._start(event, lane)
            case "llm.charged.v1":
                self._charge(event, lane)
            case "llm.finished.v1":
                self._finish(event, lane)
            case "llm.rejected.v1":
                self._reject(event, lane)
            case "endpoint.configured.v2":
                lane.settings = event.data

    def _queue(self, event: LedgerEvent, lane: LlmLane) -> None:
        request_id, key = event.data["request_id"], _key(event)
        if request_id in lane.open:
            self._add(event, f"{request_id} was queued while a request of this id was open")
        elif lane.accepted.get(key):
            self._add(event, f"{request_id} was queued again after it had run")
        lane.accept(key)
        lane.open[request_id] = OpenLlmRequest(event.data)

    def _start(self, event: LedgerEvent, lane: LlmLane) -> None:
        request_id = event.data["request_id"]
        request = self._own(event, lane)
        if request is None:
            self._add(event, f"{request_id} was started without a reservation")
            return
        if request.is_running:
            self._add(event, f"{request_id} was started twice")
        request.is_running = True
        if _key(event) in lane.accepted:
            lane.accepted[_key(event)] = True

    def _charge(self, event: LedgerEvent, lane: LlmLane) -> None:
        for report in event.data["made"]:
            request = lane.open.get(report["request_id"])
            if request is None or not request.is_running:
                self._add(event, f"{report['request_id']} was charged while it did not run")
            else:
                request.made_tokens += report["tokens"]

    def _finish(self, event: LedgerEvent, lane: LlmLane) -> None:
        request, data = self._own(event, lane), event.data
        if request is None or not request.is_running:
            self._add(event, f"{data['request_id']} was settled while it did not run")
            return
        del lane.open[data["request_id"]]
        for fault in faults_of(request, data):
            self._add(event, f"{data['request_id']}: {fault}")
        cost = lane.cost_of(data)
        if not isclose(data.get("cost", 0.0), cost, rel_tol=1e-9, abs_tol=1e-9):
            detail = f"costs {data.get('cost', 0.0)}, by the prices of its endpoint {cost}"
            self._add(event, f"{data['request_id']}: {detail}")

    def _reject(self, event: LedgerEvent, lane: LlmLane) -> None:
        """A request that waits leaves the queue; one that does not was never accepted."""
        request = self._own(event, lane)
        if request is None:
            return
        if request.is_running:
            self._add(event, f"{event.data['request_id']} was rejected while it ran")
        del lane.open[event.data["request_id"]]

    def _own(self, event: LedgerEvent, lane: LlmLane) -> OpenLlmRequest | None:
        """Return the open request of an event, if it is of the event's tenant."""
        request = lane.open.get(event.data["request_id"])
        is_own = request is not None and request.queued["tenant"] == event.data["tenant"]
        return request if is_own else None

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations


def faults_of(request: OpenLlmRequest, settled: Payload) -> Iterator[str]:
    """Yield what is wrong with a settlement."""
    output_tokens, limit = settled["output_tokens"], request.queued["max_output_tokens"]
    if output_tokens > limit:
        engine = settled.get("upstream") or "its engine"
        yield f"{output_tokens} output tokens, {limit} were reserved ({engine} passed the limit)"
    if output_tokens < request.made_tokens:
        yield f"{output_tokens} output tokens, {request.made_tokens} were charged as they were made"
    if settled.get("outcome") != "lost":
        return
    reserved = request.queued["prompt_tokens"], max(limit, request.made_tokens)
    if (settled["prompt_tokens"], output_tokens) != reserved:
        charged = f"{settled['prompt_tokens']} and {output_tokens}"
        yield f"is lost, and charged {charged} tokens, not its whole reservation"


def _key(event: LedgerEvent) -> str:
    return f"{event.data['tenant']}/{event.data['request_id']}"
