"""A worker's output: complete in its file, and streamed from there at a bounded rate."""

from __future__ import annotations

from typing import BinaryIO

CHUNK_BYTES = 96 * 1024
LINES = 500
LINE_CHARS = 4096
MARK = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {code: MARK for code in (*range(9), *range(10, 32), *range(127, 160))}
"""Control characters, which terminals obey; the file keeps them."""


class LineTail:
    """Reads the growth of a file; line numbers also count lines that are left out.

    It keeps the descriptor: a file that a worker puts in its place is never opened.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""
        self._number = 0

    def poll(self) -> tuple[int, tuple[str, ...]]:
        """Return the number of the first line, and the first LINES of at most one chunk."""
        first, whole = self._number, self._split(self._file.read(CHUNK_BYTES))
        return first, tuple(map(_text, whole[:LINES]))

    def finish(self) -> tuple[int, tuple[str, ...]]:
        """Return the last LINES of the rest, with an unterminated last line."""
        last: list[bytes] = []
        while chunk := self._file.read(CHUNK_BYTES):
            last = [*last, *self._split(chunk)][-LINES:]
        if self._rest:
            last = [*last, self._rest][-LINES:]
            self._number += 1
        self._file.close()
        return self._number - len(last), tuple(map(_text, last))

    def _split(self, chunk: bytes) -> list[bytes]:
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:CHUNK_BYTES]
        self._number += len(whole)
        return whole


def _text(line: bytes) -> str:
    """Decode a line; bytes of other encodings become marks."""
    text = line[: 4 * LINE_CHARS].decode("utf-8", errors="replace").rstrip("\r")
    return text[:LINE_CHARS].translate(CONTROLS)
