"""A budget is shown with what is left of it."""

from __future__ import annotations

import pytest

from services.gateway.routes.llm_usage import budget_row
from shared.contracts.endpoints import TokenBudget

BUDGET = TokenBudget(holder="user", unit="tokens", limit=100).model_dump()


@pytest.mark.parametrize(
    ("used", "held", "left"),
    [(0.0, 0.0, 100.0), (30.0, 0.0, 70.0), (30.0, 25.0, 45.0), (90.0, 50.0, 0.0)],
)
def test_what_is_left_is_never_negative(used: float, held: float, left: float) -> None:
    use = {"tenant": "ada", "holder": "u", "used": used, "held": held}
    row = budget_row("chat", BUDGET, use)
    assert (row["kind"], row["holder"], row["left"]) == ("user", "u", left)
