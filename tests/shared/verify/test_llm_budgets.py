"""Use and reservations of one budget, by holder."""

from __future__ import annotations

from typing import Any

import pytest

from shared.verify import llm_budgets
from shared.verify.llm_budgets import EndpointBudget, HeldRequest

TOKENS = (0.0, 1.0, 1.0)


def budget(**settings: Any) -> EndpointBudget:
    given = {"holder": "tenant", "unit": "tokens", "limit": 100, "memory": "forever"}
    return EndpointBudget({**given, "period_s": 60.0, **settings}, TOKENS)


def request(**queued: Any) -> HeldRequest:
    given = {"tenant": "red", "endpoint": "chat", "prompt_tokens": 30, "max_output_tokens": 50}
    return HeldRequest({**given, **queued}, prompt_tokens=30, queued_at=0)


def test_a_request_holds_its_price_until_it_is_used_or_released() -> None:
    tokens, one = budget(), request()
    assert tokens.queue(one, 0) == -20.0
    tokens.start(one, 5)
    tokens.make(one, 20, 6)
    one.made_tokens = 20
    use = tokens.use(one)
    assert (use.held, use.meter.total(6)) == (30.0, 50.0)
    tokens.end(one, 28, 9)
    assert (use.held, use.meter.total(9)) == (0.0, 48.0)


def test_one_that_leaves_the_queue_gives_all_back() -> None:
    tokens, one = budget(), request()
    tokens.queue(one, 0)
    tokens.withdraw(one)
    assert tokens.queue(request(), 1) == -20.0


@pytest.mark.parametrize(
    ("holder", "queued", "key"),
    [
        ("tenant", {}, ("", "red")),
        ("user", {"user": "u"}, ("red", "u")),
        ("application", {}, ("red", "default")),
        ("model", {}, ("", "chat")),
        ("model", {"model": "chat-de"}, ("", "chat-de")),
    ],
)
def test_holders_of_a_tenant_are_not_those_of_another(
    holder: str, queued: dict[str, str], key: tuple[str, str]
) -> None:
    assert budget(holder=holder).holder_of(request(**queued)) == key


def test_a_period_matters_only_to_a_memory_that_has_one() -> None:
    assert budget(period_s=1.0).kind == budget().kind
    assert budget(period_s=1.0, memory="window").kind != budget(memory="window").kind


def test_holders_beyond_those_that_the_service_remembers_are_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(llm_budgets, "REMEMBERED", 1)
    users = budget(holder="user")
    users.queue(request(user="u"), 0)
    assert users.is_checked(request(user="u"))
    users.queue(request(user="v"), 0)
    assert not users.is_checked(request(user="u"))
    assert users.uses == {}


def test_holders_that_came_once_are_forgotten_with_what_they_used() -> None:
    users = budget(holder="user", memory="window", period_s=1.0)
    for number in range(1_000):
        one = request(user=f"u{number}")
        users.queue(one, 100 * number)
        users.start(one, 100 * number)
        users.end(one, 30, 100 * number)
    assert 10 <= len(users.uses["red"]) <= 12


def test_a_newer_budget_counts_a_running_request_with_what_it_made() -> None:
    tokens, one = budget(), request()
    one.started_at, one.made_tokens = 5, 20
    tokens.count_again(one)
    use = tokens.use(one)
    assert (use.held, use.meter.total(5)) == (30.0, 50.0)
