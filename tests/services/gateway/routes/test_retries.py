"""Repetition of jobs: the record in which their specification is looked for."""

from __future__ import annotations

import pytest

from services.gateway.routes.retries import subject_of


@pytest.mark.parametrize(
    ("job", "index", "subject", "first"),
    [
        ("j", None, "j", "j"),
        ("a.12", 12, "a", "a.0"),
        # A job of its own that repeats one of an array.
        ("j", 12, "j", "j"),
    ],
)
def test_the_spec_of_an_arrays_job_is_that_of_the_array(
    job: str, index: int | None, subject: str, first: str
) -> None:
    assert subject_of(job, index) == (subject, first)
