"""The history of a job names the pool that it went to."""

from __future__ import annotations

import pytest

from cli.text.phases import phase
from cli.text.reasons import words


@pytest.mark.parametrize(("resumes", "end"), [(True, "from its checkpoint"), (False, "at once")])
def test_a_transfer_is_no_cancel(resumes: bool, end: str) -> None:
    data = {"reason": "transferred", "transferred_to": {"pool": "b", "resumes": resumes}}
    assert phase("job.cancelled.v1", data) == "transferred"
    line = words("job.cancelled.v1", data)
    assert line.startswith("to pool b,")
    assert line.endswith(end)
