"""Tokens by the bytes of a text: learned from complete answers, and moved by no single tenant."""

from __future__ import annotations

from services.throttle.relay.answer_tokens import AnswerTokens
from services.throttle.relay.tokens import FIRST_RATIO, LEAST_RATIO, MOST_RATIO, MOST_TENANTS


def test_a_ratio_is_learned_from_the_first_answer() -> None:
    tokens = AnswerTokens()
    assert tokens.estimate("a", 100) == 100 / FIRST_RATIO
    tokens.observe("a", 500, 100)
    assert tokens.estimate("a", 100) == tokens.estimate("b", 100) == 20
    tokens.observe("a", 0, 10)
    tokens.observe("a", 10, 0)
    assert tokens.estimate("a", 100) == 20


def test_no_tenant_moves_what_others_pay_alone() -> None:
    tokens = AnswerTokens()
    for tenant in ("a", "b", "c"):
        tokens.observe(tenant, 500, 100)
    for _ in range(1000):
        tokens.observe("odd", 100, 100)
    assert tokens.ratio_of("odd") == LEAST_RATIO
    assert tokens.ratio_of("a") == tokens.ratio_of("new") == 5.0


def test_ratios_and_tenants_are_bounded() -> None:
    tokens = AnswerTokens()
    tokens.observe("a", 10**9, 1)
    assert tokens.ratio_of("a") == MOST_RATIO
    for number in range(MOST_TENANTS):
        tokens.observe(f"t{number}", 40, 10)
    assert tokens.ratio_of("a") == 4.0
