"""Of a record the lines from a number on are taken; what is no output has none."""

from __future__ import annotations

import pytest

from shared.bus.logs.log import Entry
from shared.job_logs.chunk import JobKey, Run, Worker
from shared.job_logs.record import printed_of
from tests.shared.job_logs.printing import printed


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"j1",
        b'{"j1":',
        b"\xff",
        printed(-1, "a"),
        printed(0, "a", job=".."),
        printed(0, "a", job="../x"),
        printed(0, "a", tenant=""),
    ],
)
def test_other_records_are_no_output(value: bytes | None) -> None:
    assert printed_of(Entry(0, None, value)) is None


def test_lines_are_taken_from_a_number_on() -> None:
    record = printed_of(Entry(0, None, printed(3, "a", "b", rank=2, attempt=4, is_last=True)))
    assert record is not None and record.is_last
    assert (record.worker, record.key(7)) == (Worker(4, 2), JobKey(7, "ada", "j1"))
    assert record.run_from(0, 9) == Run(9, 3, ["a", "b"])
    assert record.run_from(4, 9) == Run(9, 4, ["b"])
    assert record.run_from(5, 9) is None
