"""Output as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.lines import (
    LINE_CHARS,
    MARK,
    count_fitting,
    last_state,
    line_text,
    split_lines,
    superseded,
)


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=20))
def test_whole_lines_are_taken_and_counted(lines: list[bytes]) -> None:
    chunk = b"".join(line + b"\n" for line in lines)
    taken, size = split_lines(chunk + b"rest", 1000)
    assert taken == tuple(map(line_text, lines)) and size == len(chunk)


@given(st.integers(0, 10), st.integers(0, 10))
def test_no_more_lines_are_taken_than_asked_for(count: int, most: int) -> None:
    lines, size = split_lines(b"ab\n" * count, most)
    assert len(lines) == min(count, most) and size == 3 * len(lines)


@given(st.binary(max_size=100))
def test_terminals_have_nothing_to_obey(line: bytes) -> None:
    text = line_text(line)
    assert not any(ord(c) < 32 and c != "\t" or 127 <= ord(c) < 160 for c in text)


def test_a_long_line_is_cut() -> None:
    text = line_text(b"x" * 10**6)
    assert len(text) == LINE_CHARS
    assert text.endswith("x... [berth: a line of 1000000 bytes]")
    assert line_text(b"x" * LINE_CHARS) == "x" * LINE_CHARS


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b" 10 %\r 20 %\r100 %", "100 %"),
        (b" 10 %\r100 %\r", "100 %"),
        (b"dos\r", "dos"),
        (b"\r", ""),
        (b"\rbar", "bar"),
        (b"\xff\x00\xe4\xb8", f"{MARK}{MARK}{MARK}"),
    ],
)
def test_of_a_line_that_is_written_anew_the_last_state_is_taken(line: bytes, text: str) -> None:
    assert line_text(line) == text


@given(st.lists(st.sampled_from([b"\r", b"ab", b"c"]), max_size=12).map(b"".join))
def test_what_is_superseded_does_not_change_the_last_state(rest: bytes) -> None:
    assert last_state(rest[superseded(rest) :]) == last_state(rest)
    assert superseded(rest[superseded(rest) :]) == 0


def test_lines_are_counted_as_json() -> None:
    assert count_fitting(["a" * 10] * 9, 3 * 14) == 3
    assert count_fitting(["\N{REPLACEMENT CHARACTER}" * 10] * 9, 3 * 64) == 3
    assert count_fitting(["a" * 100], 1) == 1 and count_fitting([], 1) == 0
