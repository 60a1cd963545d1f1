"""Output becomes whole lines that no terminal obeys."""

from __future__ import annotations

from services.executor.core.engines.output_lines import LINE_CHARS, split_lines


def test_whole_lines_are_taken_and_the_rest_waits() -> None:
    assert split_lines(b"a\r\nb\x1b[1m\nrest", 9) == (("a", "b\N{REPLACEMENT CHARACTER}[1m"), 9)
    assert split_lines(b"a\nb\n", 1) == (("a",), 2)
    assert split_lines(b"rest", 9) == ((), 0)


def test_an_endless_line_is_cut() -> None:
    chunk = b"x" * (5 * LINE_CHARS)
    lines, used = split_lines(chunk, 9)
    assert lines == ("x" * LINE_CHARS,) and used == len(chunk)
