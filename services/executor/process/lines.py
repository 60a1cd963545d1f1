"""A worker's output: whole in its file, and streamed from there at a bounded rate."""

from __future__ import annotations

from typing import BinaryIO

CHUNK_BYTES = 96 * 1024
LINES = 500
LINE_CHARS = 4096
MARK = "\N{REPLACEMENT CHARACTER}"
CONTROLS = {code: MARK for code in (*range(9), *range(10, 32), *range(127, 160))}
"""Terminals obey them; the file has them still."""


class LineTail:
    """Reads what a file has grown by; line numbers count also what is not handed out.

    It keeps the descriptor: what a worker puts in the place of its file is never opened.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""
        self._number = 0

    def poll(self) -> tuple[int, tuple[str, ...]]:
        """Number of the first line, and the first LINES of at most one chunk."""
        first, whole = self._number, self._split(self._file.read(CHUNK_BYTES))
        return first, tuple(map(_text, whole[:LINES]))

    def finish(self) -> tuple[int, tuple[str, ...]]:
        """The last LINES lines of what is left; also the last of all, though it has no end."""
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
    """Other encodings become marks."""
    text = line[: 4 * LINE_CHARS].decode("utf-8", errors="replace").rstrip("\r")
    return text[:LINE_CHARS].translate(CONTROLS)
