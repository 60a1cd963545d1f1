"""The body of an injection is bounded before it becomes a command."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.gateway.routes.injections import InjectionRequest

BODY: dict[str, Any] = {"fault": "slow", "for_s": 60}


def test_a_fault_and_its_time_are_enough() -> None:
    body = InjectionRequest.model_validate(BODY)
    assert (body.fault, body.factor, body.for_s, body.pool) == ("slow", 2.0, 60, None)


@pytest.mark.parametrize(
    "fields",
    [
        {"fault": "melt"},
        {"factor": 1},
        {"factor": 101},
        {"for_s": 0},
        {"for_s": 3601},
        {"for_s": float("nan")},
        {"reason": "x" * 257},
    ],
)
def test_what_is_out_of_bounds_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        InjectionRequest.model_validate({**BODY, **fields})
