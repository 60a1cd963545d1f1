from __future__ import annotations

from services.throttle.tickets import Tickets
from shared.contracts.llm import LlmRequestStarted
from shared.ledger.decider import Fact


async def test_a_start_that_comes_as_its_handler_is_cancelled_has_no_ticket() -> None:
    """A task that is cancelled cancels its future at once, and removes the ticket later."""
    tickets = Tickets()
    tickets.add("r1").decided.cancel()
    started = LlmRequestStarted(request_id="r1", tenant="acme")
    assert tickets.apply([Fact(started, "throttle", 0, 1, 0, 0)]) == [started]


async def test_a_start_of_a_ticket_is_decided_once() -> None:
    tickets = Tickets()
    ticket = tickets.add("r1")
    fact = Fact(LlmRequestStarted(request_id="r1", tenant="acme"), "throttle", 0, 1, 0, 0)
    assert tickets.apply([fact, fact]) == []
    assert ticket.started
