from __future__ import annotations

import pytest

from services.throttle.core.disciplines.cost import LINEAR, ProfiledCost


def test_the_linear_cost_counts_an_output_token_twice() -> None:
    assert LINEAR.of(10, 3) == 16


def test_the_profiled_cost_is_the_one_of_the_artifact() -> None:
    """`cost_func_profile` of the VTC artifact, computed by hand for 100 and 10 tokens."""
    expected = 21.001891 + 1.0075395 + 3.9868 + 0.324733 + 1.14601454
    assert ProfiledCost().of(100, 10) == pytest.approx(expected)
