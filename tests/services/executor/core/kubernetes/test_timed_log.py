"""Lines of a log with times are passed on once, over streams that begin anew."""

from __future__ import annotations

import pytest

from services.executor.core.kubernetes.timed_log import (
    LONGEST_LINE_BYTES,
    MISSING,
    TimedLog,
    moment_of,
)


def line(number: int, text: str = "") -> bytes:
    """Return a line of that nanosecond."""
    return f"2026-01-01T00:00:01.{number:09}Z {text or number}\n".encode()


def test_output_comes_without_times_and_a_line_in_parts_once_it_is_whole() -> None:
    lines = TimedLog()
    assert lines.begin() == ""
    assert lines.take(line(1) + line(2)[:20]) == b"1\n"
    assert lines.take(line(2)[20:]) == b"2\n"


def test_a_stream_that_begins_anew_goes_on_after_the_last_line() -> None:
    lines = TimedLog()
    lines.begin()
    lines.take(line(1) + line(2) + line(2, "b") + line(3)[:9])
    assert lines.begin() == "2026-01-01T00:00:01.000000002Z"
    again = line(1) + line(2) + line(2, "b") + line(2, "c") + line(3)
    assert lines.take(again) == b"c\n3\n"


@pytest.mark.parametrize("again", [line(5), line(2) + line(5)])
def test_lines_that_were_rotated_away_meanwhile_are_noted(again: bytes) -> None:
    lines = TimedLog()
    lines.begin()
    lines.take(line(2) + line(2, "b"))
    lines.begin()
    assert lines.take(again).decode() == f"{MISSING}5\n"
    assert lines.take(line(6)) == b"6\n"


def test_a_new_reader_skips_what_an_earlier_one_passed_on() -> None:
    lines = TimedLog(skip=3)
    lines.begin()
    assert lines.take(line(1) + line(2)) == b"\n"
    assert lines.take(line(3)) == b"3\n"
    assert lines.begin() and lines.take(line(3) + line(4)) == b"4\n"


def test_a_log_without_times_goes_on_by_bytes() -> None:
    lines = TimedLog()
    lines.begin()
    assert lines.take(b"one\ntwo 2\n") == b"one\ntwo 2\n"
    assert lines.begin() == ""
    assert lines.take(b"one\ntwo 2\nthree\n") == b"three\n"


def test_the_last_line_may_have_no_end_and_an_endless_one_is_passed_on() -> None:
    lines = TimedLog()
    lines.begin()
    assert lines.take(line(1)[:-1]) == b"" and lines.end() == b"1" and lines.end() == b""
    endless = line(2, "x" * LONGEST_LINE_BYTES)[:-1]
    assert lines.take(endless) == b"x" * LONGEST_LINE_BYTES
    assert lines.take(b"yy\n" + line(3)) == b"yy\n3\n"


@pytest.mark.parametrize(
    ("time", "moment"),
    [
        ("1970-01-01T00:00:02Z", (2, 0)),
        ("1970-01-01T00:00:02.5Z", (2, 500_000_000)),
        ("1970-01-01T01:00:02.000000001+01:00", (2, 1)),
        ("1970-01-01T00:00:02.0000000001Z", None),
        ("1970-01-01T00:00:02", None),
        ("epoch", None),
        ("1970-01-01T00:00:02.x1Z", None),
    ],
)
def test_times_of_a_log_have_nanoseconds(time: str, moment: object) -> None:
    assert moment_of(time) == moment
