"""Output becomes whole lines that no terminal obeys."""

from __future__ import annotations

from services.executor.core.engines.output_lines import (
    LINE_CHARS,
    TAIL_CHARS,
    TAIL_LINES,
    last_lines,
    split_lines,
)


def test_whole_lines_are_taken_and_the_rest_waits() -> None:
    assert split_lines(b"a\r\nb\x1b[1m\nrest", 9) == (("a", "b\N{REPLACEMENT CHARACTER}[1m"), 9)
    assert split_lines(b"a\nb\n", 1) == (("a",), 2)
    assert split_lines(b"rest", 9) == ((), 0)


def test_an_endless_line_is_cut() -> None:
    chunk = b"x" * (5 * LINE_CHARS)
    lines, used = split_lines(chunk, 9)
    assert lines == ("x" * LINE_CHARS,) and used == len(chunk)


def test_the_last_lines_are_few_and_short() -> None:
    assert last_lines(b"") == last_lines(b"\n\n") == ()
    assert last_lines(b"a\nb\r\n") == ("a", "b")
    many = last_lines(b"y" * 2 * TAIL_CHARS + b"\n" + b"z\n" * (TAIL_LINES - 1))
    assert many == ("y" * TAIL_CHARS, *("z",) * (TAIL_LINES - 1))
