"""A budget is shown with what is left of it."""

from __future__ import annotations

import pytest

from services.gateway.routes.llm_usage import budget_row
from shared.contracts.endpoints import TokenBudget

BUDGET = TokenBudget(holder="user", unit="tokens", limit=100).model_dump()


@pytest.mark.parametrize(("used", "left"), [(0.0, 100.0), (30.0, 70.0), (140.0, 0.0)])
def test_what_is_left_is_never_negative(used: float, left: float) -> None:
    row = budget_row("chat", BUDGET, {"tenant": "ada", "holder": "u", "used": used})
    assert (row["kind"], row["holder"], row["left"]) == ("user", "u", left)
