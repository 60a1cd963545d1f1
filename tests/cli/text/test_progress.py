"""`berth why` and `show` say how far a running job is."""

from __future__ import annotations

import pytest

from cli.text.progress import progress_lines

NOW = 1_700_000_000_000
JOB: dict[str, object] = {
    "phase": "running",
    "progressed_at": NOW - 60_000,
    "progress_step": 4200,
    "progress_total": 10_000,
    "expected_end_at": NOW + 35 * 60_000,
    "as_of": NOW,
}


def test_the_iterations_and_the_rest_are_shown() -> None:
    [line] = progress_lines(JOB)
    assert line.startswith("iteration 4,200 of 10,000 at ")
    assert "; about 35 min 0 s left by its own reports, until " in line


def test_a_job_that_ran_past_its_report_is_named_so() -> None:
    [line] = progress_lines({**JOB, "expected_end_at": NOW - 1})
    assert "ran past the end" in line


@pytest.mark.parametrize(
    "other", [{"phase": "succeeded"}, {"expected_end_at": 0}, {"expected_end_at": None}]
)
def test_others_have_no_line(other: dict[str, object]) -> None:
    assert progress_lines({**JOB, **other}) == []
