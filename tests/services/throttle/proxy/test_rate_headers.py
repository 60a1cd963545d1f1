"""The headers `x-ratelimit-*` have what is left: of the queue, or of the budget with the least."""

from __future__ import annotations

from services.throttle.core.disciplines.budgets import REQUESTS, Budget
from services.throttle.core.disciplines.discipline import Discipline
from services.throttle.core.disciplines.fcfs import Fcfs
from services.throttle.core.state import EndpointState
from services.throttle.proxy.rate_headers import rate_headers
from tests.services.throttle.core.disciplines.serving import a_request
from tests.services.throttle.llm import endpoint


def state_with(*budgets: Budget, waiting: int = 0) -> EndpointState:
    state = EndpointState(0, endpoint(queue_limit=8), discipline=Discipline(Fcfs(), budgets))
    if waiting:
        state.waiting_of["a"] = waiting
    return state


def test_without_a_budget_the_room_in_the_queue_is_left() -> None:
    assert rate_headers(state_with(waiting=3), a_request(), 0) == {
        "x-ratelimit-limit-requests": "8",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "0.000s",
    }


def test_the_room_is_never_negative() -> None:
    headers = rate_headers(state_with(waiting=9), a_request(), 0)
    assert headers["x-ratelimit-remaining-requests"] == "0"


def test_of_two_budgets_in_one_unit_that_with_less_left_counts() -> None:
    headers = rate_headers(state_with(Budget(900), Budget(100)), a_request(), 0)
    assert headers["x-ratelimit-limit-tokens"] == "100"
    assert headers["x-ratelimit-limit-requests"] == "8"


def test_a_budget_of_requests_counts_where_it_has_less_left_than_the_queue() -> None:
    state = state_with(Budget(2, prices=REQUESTS), waiting=1)
    assert rate_headers(state, a_request(), 0)["x-ratelimit-limit-requests"] == "2"
    assert (
        rate_headers(state_with(Budget(9, prices=REQUESTS)), a_request(), 0)[
            "x-ratelimit-limit-requests"
        ]
        == "8"
    )
