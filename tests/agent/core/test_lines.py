"""Output as lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth_agent.core.lines import LINE_CHARS, count_fitting, line_text, split_lines


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
    assert len(line_text(b"x" * 10**6)) == LINE_CHARS


def test_lines_are_counted_as_json() -> None:
    assert count_fitting(["a" * 10] * 9, 3 * 14) == 3
    assert count_fitting(["\N{REPLACEMENT CHARACTER}" * 10] * 9, 3 * 64) == 3
    assert count_fitting(["a" * 100], 1) == 1 and count_fitting([], 1) == 0
