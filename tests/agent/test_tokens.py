"""Tokens: which processes a node takes for its own."""

from __future__ import annotations

import pytest

from berth_agent.tokens import NodeTokens

MARKED, UNMARKED = NodeTokens("n1", "abc"), NodeTokens("n1", "")


@pytest.mark.parametrize("tokens", [MARKED, UNMARKED])
def test_a_new_token_is_own_and_like_no_other(tokens: NodeTokens) -> None:
    token = tokens.new()
    assert token.startswith(tokens.prefix)
    assert tokens.is_own(token) and token != tokens.new()


@pytest.mark.parametrize(
    ("tokens", "token", "is_own"),
    [
        (MARKED, "n1:0f", True),
        (MARKED, "n1:def:0f", False),
        (MARKED, "n2:abc:0f", False),
        (MARKED, "n10:abc:0f", False),
        (UNMARKED, "n1:abc:0f", False),
        (MARKED, "", False),
    ],
)
def test_a_token_without_a_mark_may_be_of_any_installation(
    tokens: NodeTokens, token: str, is_own: bool
) -> None:
    assert tokens.is_own(token) is is_own
