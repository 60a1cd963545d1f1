"""Follows the segments of a worker's output; lines that are left out leave a gap in the numbers."""

from __future__ import annotations

import os

from berth_agent.core.lines import count_fitting, line_text, split_lines, superseded
from berth_agent.messages import PrintedLines
from berth_agent.step.output import NAME

CHUNK_BYTES = 96 * 1024
LAST_BYTES = 64 * 1024
"""Of the output that is streamed when the reader is far behind."""
BEHIND_BYTES = 1024 * 1024
SHARE_BYTES = 64 * 1024
"""Encoded lines of one worker in one message, and more only where a single line is longer."""
OPEN_READS = 4
"""Of these, without a new line, one sends the state of a line that has no end yet."""


class OutputFollower:
    """Reads lines once; a position is kept only after its lines were sent."""

    def __init__(self, allocation_id: str, folder: str) -> None:
        self.folder = folder
        """Folder of the output; it moves when the allocation is dropped."""
        self._allocation_id = allocation_id
        self._line = 0
        self._segment = 0
        self._offset = 0
        self._next: tuple[int, int, int] | None = None
        self._ends = self._is_complete = False
        self._rest = b""
        """The begin of a line without an end, as of the last read."""
        self._open_line = self._open_sent = ""
        self._reads_without_lines = 0

    @property
    def position(self) -> tuple[int, int, int]:
        """Number of the next line, first line of its segment, and the offset in it."""
        return self._line, self._segment, self._offset

    def resume(self, position: tuple[int, int, int]) -> None:
        """Go on where an earlier agent was."""
        self._line, self._segment, self._offset = position

    def read(self, most_lines: int, *, ended: bool) -> PrintedLines | None:
        """Return the next lines, None if there are none; `sent` accepts them.

        After those of a worker that has ended comes once a message that says so. While there is no
        line, the state of one that has no end yet is sent now and then, where it has changed.
        """
        self._ends, self._open_line, self._rest = False, "", b""
        printed = self._read_lines(most_lines, ended=ended)
        if printed is not None or self._is_complete:
            self._reads_without_lines = 0
            return printed
        if not ended:
            return self._read_open_line()
        self._next, self._ends = self.position, True
        return self._printed((), is_last=True)

    def _read_lines(self, most_lines: int, *, ended: bool) -> PrintedLines | None:
        self._skip_backlog()
        segments = self._segments()
        for first in (s for s in segments if s >= self._segment):
            if first > self._segment:
                # What lay between was dropped: the gap in the numbers shows it.
                self._segment, self._offset, self._line = first, 0, max(first, self._line)
            is_last = first == segments[-1]
            printed = self._read_segment(most_lines, with_rest=ended and is_last)
            if printed is not None:
                return printed
        return None

    def _read_open_line(self) -> PrintedLines | None:
        self._reads_without_lines += 1
        state = line_text(self._rest)
        if self._reads_without_lines < OPEN_READS or state == self._open_sent:
            return None
        self._next, self._open_line = self.position, state
        return self._printed((), open_line=state)

    def sent(self) -> None:
        """Take the lines of the last `read` as sent."""
        if self._next is not None:
            self._open_sent, self._reads_without_lines = self._open_line, 0
            self._line, self._segment, self._offset = self._next
            self._next, self._is_complete = None, self._ends

    def _read_segment(self, most_lines: int, *, with_rest: bool) -> PrintedLines | None:
        chunk = self._line_begin(self._chunk(self._segment, self._offset, CHUNK_BYTES))
        lines, taken = split_lines(chunk, most_lines)
        if (fitting := count_fitting(lines, SHARE_BYTES)) < len(lines):
            lines, taken = split_lines(chunk, fitting)
        if not lines and chunk and (with_rest or len(chunk) == CHUNK_BYTES):
            lines, taken = (line_text(chunk),), len(chunk)
        if not lines:
            self._rest = chunk
            return None
        self._next = (self._line + len(lines), self._segment, self._offset + taken)
        return self._printed(lines)

    def _line_begin(self, chunk: bytes) -> bytes:
        """Leave out the states of a long line that are superseded: it stays one line."""
        while len(chunk) == CHUNK_BYTES and b"\n" not in chunk and (cut := superseded(chunk)):
            self._offset += cut
            chunk = self._chunk(self._segment, self._offset, CHUNK_BYTES)
        return chunk

    def _printed(
        self, lines: tuple[str, ...], *, is_last: bool = False, open_line: str = ""
    ) -> PrintedLines:
        return PrintedLines(
            allocation_id=self._allocation_id,
            first_line=self._line,
            lines=lines,
            is_last=is_last,
            open_line=open_line,
        )

    def _skip_backlog(self) -> None:
        """Leave out what is too old, so that the newest lines are seen soon."""
        sizes = [(s, self._size(s)) for s in self._segments() if s >= self._segment]
        total = sum(size for _, size in sizes) - self._offset
        if total <= BEHIND_BYTES:
            return
        last, size = sizes[-1]
        if last > self._segment:
            self._segment, self._offset, self._line = last, 0, last
        start = max(self._offset, size - LAST_BYTES)
        while self._offset < start:
            chunk = self._chunk(last, self._offset, min(CHUNK_BYTES, start - self._offset))
            if not chunk:
                return
            self._line += chunk.count(b"\n")
            self._offset += len(chunk)
        self._finish_line(last)

    def _finish_line(self, segment: int) -> None:
        """Begin with a whole line after a skip."""
        chunk = self._chunk(segment, self._offset, CHUNK_BYTES)
        cut = chunk.find(b"\n") + 1
        if self._offset and cut:
            self._line += 1
            self._offset += cut

    def _segments(self) -> list[int]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        numbers = (name.removeprefix(NAME) for name in names if name.startswith(NAME))
        return sorted(int(number) for number in numbers if number.isdecimal())

    def _size(self, segment: int) -> int:
        try:
            return os.stat(f"{self.folder}/{NAME}{segment}").st_size
        except OSError:
            return 0

    def _chunk(self, segment: int, offset: int, size: int) -> bytes:
        try:
            descriptor = os.open(f"{self.folder}/{NAME}{segment}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)
