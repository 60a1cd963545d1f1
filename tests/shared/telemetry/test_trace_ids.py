"""Trace context: strict to read, always sampled to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.telemetry.trace_ids import child_of, for_event, new_traceparent, parse

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_is_read_and_written_back() -> None:
    assert parse(GOOD) == (TRACE, SPAN, 1)
    assert str(parse(GOOD)) == GOOD


def test_a_later_version_is_read_by_its_known_beginning() -> None:
    assert parse(f"01-{TRACE}-{SPAN}-01-what-comes") == (TRACE, SPAN, 1)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "00",
        None,
        7,
        b"00",
        GOOD.upper(),
        GOOD + "-tail",
        GOOD + "\n",
        " " + GOOD,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        "01" + GOOD[2:] + "-" + "x" * 600,
    ],
)
def test_what_is_no_traceparent_is_none(bad: object) -> None:
    assert parse(bad) is None


@given(st.one_of(st.text(), st.binary(), st.from_regex(r"00-[0-9a-f]{30,34}-[0-9a-f]{16}-0.")))
def test_reading_never_raises(anything: object) -> None:
    parse(anything)


def test_a_child_stays_in_the_trace_under_an_id_of_its_own() -> None:
    child = parse(child_of(f"00-{TRACE}-{SPAN}-00"))
    assert child is not None
    assert (child.trace_id, child.flags) == (TRACE, 1)
    assert child.span_id != SPAN


def test_a_child_of_nothing_begins_a_trace() -> None:
    assert parse(child_of("nonsense")) is not None
    assert len({new_traceparent() for _ in range(100)}) == 100


def test_a_job_is_started_in_one_trace_and_preempted_in_another() -> None:
    assert for_event("job.placed.v1", GOOD)[3:35] == TRACE
    assert for_event("job.preempted.v1", GOOD)[3:35] != TRACE
