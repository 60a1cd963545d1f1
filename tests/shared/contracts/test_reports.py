"""Iteration times of which a column does not fit are refused as a whole."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.contracts.reports import TelemetryReported


def test_a_record_with_a_column_that_does_not_fit_is_refused() -> None:
    times = {"job_id": "j", "allocation_id": "a", "node_id": "n", "rank": 0, "iteration_s": [1, 2]}
    report = {"executor_id": "e", "at": 1, "times": [times]}
    assert TelemetryReported.model_validate(report).times[0].iteration_s == (1, 2)
    times["own_s"] = [1]
    with pytest.raises(ValidationError, match="own_s: 1 values"):
        TelemetryReported.model_validate(report)
