"""A pipeline of users' numbers is checked: the error names field, value and rule."""

from __future__ import annotations

from typing import Any

import pytest

from shared.pipeline.model import PipelineError, checked

FIELDS: dict[str, Any] = {
    "stages": 3,
    "microbatches": 4,
    "forward": [10],
    "backward": [10],
    "weight": [10],
    "link_delay": [0],
}


def test_one_number_stands_for_all_stages_and_links() -> None:
    pipeline = checked(**{**FIELDS, "link_delay": [5], "memory": [6]})
    assert pipeline.forward == (10, 10, 10)
    assert pipeline.link_delay == (5, 5)
    assert [pipeline.bound(stage) for stage in range(3)] == [4, 4, 4]


def test_a_single_stage_has_no_links() -> None:
    assert checked(**{**FIELDS, "stages": 1}).link_delay == ()


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("stages", 0, "stages: 0 is not between 1 and 256"),
        ("microbatches", 5000, "microbatches: 5000 is not between 1 and 4096"),
        ("forward", [0], "forward: 0 is not a positive finite number"),
        ("backward", [float("nan")], "backward: nan is not a positive finite number"),
        ("weight", [-1], "weight: -1 is not a finite number of 0 or more"),
        ("forward", [1, 2], "forward: 2 values; the rule is 1 or 3"),
        ("link_delay", [1, 2, 3], "link_delay: 3 values; the rule is 1 or 2"),
        ("link_delay", [float("inf")], "link_delay: inf is not a finite number of 0 or more"),
        ("memory", [0], "memory: 0 is not between 1 and 4096"),
        ("memory", [1, 2], "memory: 2 values; the rule is 1 or 3"),
    ],
)
def test_bad_input_is_named(field: str, value: Any, rule: str) -> None:
    with pytest.raises(PipelineError, match=rule):
        checked(**{**FIELDS, field: value})


def test_a_plan_that_would_take_minutes_is_refused() -> None:
    with pytest.raises(PipelineError, match="microbatches: 4096 with 200 stages"):
        checked(**{**FIELDS, "stages": 200, "microbatches": 4096})
