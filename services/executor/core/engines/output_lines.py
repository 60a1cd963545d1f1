"""Output as lines for the stream: bounded, and without what terminals obey."""

from __future__ import annotations

LINE_CHARS = 4096
TAIL_BYTES, TAIL_LINES, TAIL_CHARS = 8192, 20, 512
"""Bounds of the last lines that the end of a worker has: read, shown, and shown of each."""
MARK = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {code: MARK for code in (*range(9), *range(10, 32), *range(127, 160))}
"""Control characters, which terminals obey; the file keeps them."""


def split_lines(chunk: bytes, most: int) -> tuple[tuple[str, ...], int]:
    """Return the first whole lines of a chunk, at most `most`, and the bytes that they took.

    A chunk of one endless line is a line.
    """
    lines: list[str] = []
    place = 0
    while len(lines) < most and (end := chunk.find(b"\n", place)) >= 0:
        lines.append(line_text(chunk[place:end]))
        place = end + 1
    if not place and len(chunk) > 4 * LINE_CHARS:
        return (line_text(chunk),), len(chunk)
    return tuple(lines), place


def line_text(line: bytes) -> str:
    """Decode a line; bytes of other encodings become marks."""
    text = line[: 4 * LINE_CHARS].decode("utf-8", errors="replace").rstrip("\r")
    return text[:LINE_CHARS].translate(CONTROLS)


def last_lines(output: bytes) -> tuple[str, ...]:
    """Return the last lines of an output of which at most its last TAIL_BYTES are given."""
    lines = output.removesuffix(b"\n").split(b"\n")
    texts = tuple(line_text(line)[:TAIL_CHARS] for line in lines[-TAIL_LINES:])
    return texts if any(texts) else ()
