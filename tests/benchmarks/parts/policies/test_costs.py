"""The cost of a stop, for rules of our own and of papers."""

from __future__ import annotations

import pytest

from benchmarks.parts.policies.costs import StopCosts
from benchmarks.parts.policies.rules import GITTINS, LAS

HALF_HOURLY = StopCosts(1800.0, 60.0, 0.5)


def test_rules_that_make_progress_take_the_costs_alone() -> None:
    rules = HALF_HOURLY.applied(GITTINS.rules)
    assert (rules.checkpoint_s, rules.restart_s, rules.fixed_share) == (1800.0, 60.0, 0.5)
    assert rules.min_residency_s == GITTINS.rules.min_residency_s


def test_rules_of_papers_protect_a_checkpoint_and_a_restart_at_least() -> None:
    assert HALF_HOURLY.applied(LAS.rules).min_residency_s == 1860.0
    assert StopCosts().applied(LAS.rules) == LAS.rules, "the costs that papers assume"


def test_rules_of_papers_protect_the_longest_interval_that_is_drawn() -> None:
    costs = StopCosts(1800.0, 60.0, checkpoint_spread=1.0, restart_growth=0.5)
    assert costs.applied(LAS.rules).min_residency_s == 14_460.0
    assert costs.applied(GITTINS.rules).restart_growth == 0.5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("checkpoint_s", 0.0),
        ("restart_s", -1.0),
        ("fixed_share", 1.5),
        ("checkpoint_spread", -1.0),
        ("restart_growth", -0.5),
    ],
)
def test_costs_that_cannot_be_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field}: {value}, must be"):
        StopCosts(**{field: value})
