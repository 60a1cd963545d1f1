"""Each rule of the protocol is necessary: without it the judge finds violations."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.chaos.sabotage import RULES, without
from tests.chaos.story import Plot, tell
from tests.chaos.test_simulation import HARSH

pytestmark = [pytest.mark.parts, pytest.mark.slow]

SEEDS = range(1, 5)


def plot(seed: int) -> Plot:
    return Plot(seed, 25, faults=HARSH, patience_s=80.0)


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    """Turn off logging: code that lacks a rule logs thousands of tracebacks."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("rule", RULES)
def test_code_that_lacks_a_rule_is_detected(rule: str) -> None:
    assert any(tell(plot(seed), without(rule)).wrong for seed in SEEDS)


def test_the_same_story_with_all_rules_has_no_violations() -> None:
    assert [tell(plot(seed)).wrong for seed in (1, 2)] == [[], []]
