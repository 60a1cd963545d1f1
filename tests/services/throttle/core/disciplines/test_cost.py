from __future__ import annotations

from services.throttle.core.disciplines.cost import LINEAR


def test_the_linear_cost_counts_an_output_token_twice() -> None:
    assert LINEAR.of(10, 3) == 16
