"""The throttle's decider: it queues, starts, charges, settles and rejects LLM requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.throttle.core.enqueue import enqueue
from services.throttle.core.evolve import evolve
from services.throttle.core.settle import charge_progress, remove_waiting, settle_ends
from services.throttle.core.start import advance, due_at, reject_deleted, start_requests
from services.throttle.core.state import EndpointState
from shared.contracts.access import TenantRegistered
from shared.contracts.clocks import ClockStepObserved
from shared.contracts.endpoints import EndpointConfigured, EndpointDeleted
from shared.contracts.llm import (
    CapacityObserved,
    EndpointCapacityNoted,
    EndpointClockStepped,
    EngineAdvanced,
    RequestsEnded,
    RequestsLeft,
    ServeLlmRequest,
)
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.decider import Decision, Fact, Input, Undecodable
from shared.ledger.restate import restate_settings, restate_tenants


class Throttle:
    """One endpoint; see `Decider`."""

    ledger = "throttle"
    consumed_events = CONSUMED_EVENTS["throttle"]

    def initial(self, partition: int) -> EndpointState:
        return EndpointState(partition)

    def decide(self, state: EndpointState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        for item in inputs:
            at = now - state.stepped_ms
            match item.message:
                case ServeLlmRequest() as command:
                    yield from enqueue(state, item, command, at)
                case RequestsEnded(ends=ends):
                    yield from settle_ends(state, item, ends, at)
                case EngineAdvanced(made=reports):
                    yield from charge_progress(state, item, reports)
                case RequestsLeft(request_ids=request_ids, reason=reason):
                    yield from remove_waiting(state, item, request_ids, reason)
                case CapacityObserved() as observed:
                    yield from note_capacity(state, item, observed)
                case ClockStepObserved(by_ms=by_ms):
                    stepped = EndpointClockStepped(endpoint=state.endpoint_name, by_ms=by_ms)
                    yield item.decision(stepped)
                case Undecodable() as undecodable:
                    yield item.decision(undecodable.rejection())
                case _ if item.source == "access":
                    yield from restate_access(state, item)
            yield from start_requests(state, now - state.stepped_ms, item.id)
        yield from advance(state, now - state.stepped_ms)

    def evolve(self, state: EndpointState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: EndpointState) -> int | None:
        due = due_at(state)
        return due + state.stepped_ms if due else due


def restate_access(state: EndpointState, item: Input) -> Iterator[Decision]:
    """Restate what concerns this lane of the access ledger: its endpoint, and tenants."""
    message = item.message
    if isinstance(message, EndpointDeleted):
        if state.endpoint is not None and message.endpoint == state.endpoint_name:
            yield item.decision(message)
            # The next input may give the lane to another endpoint.
            yield from reject_deleted(state, item)
        return
    yield from restate_settings([item], EndpointConfigured, state.partition, state.endpoint)
    yield from restate_tenants([item], state.note_of, llm_weight)


def llm_weight(tenant: TenantRegistered) -> float:
    """Return the weight of a tenant at LLM endpoints, which is not that of its GPUs."""
    return tenant.llm_weight


def note_capacity(
    state: EndpointState, item: Input, observed: CapacityObserved
) -> Iterator[Decision]:
    seen = observed.requests, observed.overloaded, observed.away, observed.retraining_share
    known = state.capacity, state.overloaded, state.away, state.retraining_share
    if observed.engines or seen != known:
        yield item.decision(
            EndpointCapacityNoted(
                endpoint=state.endpoint_name,
                requests=observed.requests,
                overloaded=observed.overloaded,
                away=observed.away,
                engines=observed.engines,
                retraining_share=observed.retraining_share,
            )
        )
