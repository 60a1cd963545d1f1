"""Output as lines for the stream: bounded, and without what terminals obey."""

from __future__ import annotations

import json
from collections.abc import Sequence

LINE_CHARS = 4096
MARK = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {code: MARK for code in (*range(9), *range(10, 32), *range(127, 160))}
"""Control characters, which terminals obey; the file keeps them."""


def split_lines(chunk: bytes, most: int) -> tuple[tuple[str, ...], int]:
    """Return the first whole lines of a chunk, at most `most`, and the bytes they took."""
    lines: list[str] = []
    place = 0
    while len(lines) < most and (end := chunk.find(b"\n", place)) >= 0:
        lines.append(line_text(chunk[place:end]))
        place = end + 1
    return tuple(lines), place


def line_text(line: bytes) -> str:
    """Decode the last state of a line; bytes of other encodings become marks.

    The text of a long one ends with a note of its length.
    """
    state = last_state(line)
    text = state[: 4 * LINE_CHARS].decode("utf-8", errors="replace")
    if len(text) > LINE_CHARS:
        note = f"... [berth: a line of {len(state)} bytes]"
        text = text[: LINE_CHARS - len(note)] + note
    return text.translate(CONTROLS)


def last_state(line: bytes) -> bytes:
    """Return what a terminal shows of a line whose program went back to its begin, as a bar of
    progress does."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def superseded(rest: bytes) -> int:
    """Return how many bytes of a line that has no end yet are states before the last one."""
    return rest.rfind(b"\r", 0, len(rest.rstrip(b"\r"))) + 1


def count_fitting(lines: Sequence[str], most_bytes: int) -> int:
    """Return how many of the first lines fit as JSON, whose escapes are up to 12 times as long.

    The first one counts whatever its size.
    """
    size_bytes = 0
    for count, line in enumerate(lines):
        size_bytes += len(json.dumps(line)) + 2
        if count and size_bytes > most_bytes:
            return count
    return len(lines)
