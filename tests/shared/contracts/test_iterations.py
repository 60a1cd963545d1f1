"""Columns of iterations have one value per iteration, or none."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from shared.contracts.agents import Iterations
from shared.contracts.iterations import COLUMNS, MAX_ITERATIONS, IterationColumns
from shared.contracts.reports import IterationTimes

OLD: dict[str, Any] = {
    "job_id": "j",
    "allocation_id": "0/1/0/0",
    "node_id": "n",
    "rank": 0,
    "iteration_s": [0.5, 0.25],
}


def test_a_report_of_an_earlier_release_is_read() -> None:
    times = IterationTimes.model_validate(OLD)
    assert times.iteration_s == (0.5, 0.25)
    assert (times.own_s, times.kinds, times.phases, times.process) == ((), (), {}, None)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_another_length_is_refused(name: str) -> None:
    value = "train" if name == "kinds" else 1
    IterationTimes.model_validate({**OLD, name: [value, value]})
    with pytest.raises(ValidationError, match=f"{name}: 1 values; none or one per iteration"):
        IterationTimes.model_validate({**OLD, name: [value]})


@pytest.mark.parametrize(
    "fields",
    [
        {"iteration_s": [float("nan")] * 2},
        {"iteration_s": [1] * (MAX_ITERATIONS + 1)},
        {"own_s": [2e9, 1]},
        {"kinds": ["warm-up", "train"]},
        {"tokens": [-1, 1]},
        {"phases": {"Forward": [0.5, 0.5]}},
        {"phases": {"forward": [0.5]}},
        {"phases": {f"p{number}": [0.5, 0.5] for number in range(9)}},
        {"layout": {"tp": -1}},
        {"layout": {f"a{number}": 0 for number in range(9)}},
    ],
)
def test_what_is_out_of_bounds_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        IterationTimes.model_validate({**OLD, **fields})


def test_the_agent_and_telemetry_have_the_same_columns() -> None:
    for model in (Iterations, IterationTimes):
        assert IterationColumns.model_fields.keys() <= model.model_fields.keys()
