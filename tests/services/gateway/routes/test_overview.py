"""Rows of jobs and of arrays."""

from __future__ import annotations

from services.gateway.core.strict import Body
from services.gateway.routes.overview import COUNTS, OF_ARRAYS, submission_row


def row(**more: object) -> Body:
    counts = dict.fromkeys(COUNTS, 1)
    return {**dict.fromkeys(OF_ARRAYS, "x"), "submitted_at": 5, "phase": "failed", **counts, **more}


def test_an_array_has_counts_and_no_field_of_its_first_job() -> None:
    shown = submission_row(row(job_id="a.0", is_array=True), 9)
    assert shown["job_id"] == "a" and shown["array"] == dict.fromkeys(COUNTS, 1)
    assert "phase" not in shown and "is_array" not in shown


def test_a_job_of_its_own_has_its_fields_and_no_counts() -> None:
    shown = submission_row(row(job_id="a", is_array=False), 9)
    assert (shown["job_id"], shown["phase"], shown["array"]) == ("a", "failed", None)
    assert not {"jobs", "pending", "is_array"} & shown.keys()
