"""The output of a worker: segments `output.log.<number of the first line>`, capped in size.

The first segment and the newest are kept; a gap in the numbers shows what was dropped. A full
disk loses output and never stops the worker.
"""

from __future__ import annotations

import os

SEGMENTS = 8
LEAST_SEGMENT_BYTES = 4096
CHUNK_BYTES = 64 * 1024
CHUNKS = 16
"""Of one `pump`: together the largest pipe that a worker can make of its own."""
TAIL_BYTES = 16 * 1024
NAME = "output.log."


class OutputLog:
    """Writes what a worker prints; `lines` counts whole lines, also those that were lost."""

    def __init__(self, folder: str, cap_bytes: int) -> None:
        self.lines = 0
        self._folder = folder
        self._segment_bytes = max(LEAST_SEGMENT_BYTES, cap_bytes // SEGMENTS)
        self._target_bytes = self._segment_bytes * 3 // 4
        self._segments: list[str] = []
        self._descriptor = -1
        self._size = 0
        self._inside_line = False
        self._tail = b""

    def pump(self, descriptor: int) -> bool:
        """Copy what the pipe holds now; return whether its other end may still write.

        A worker that fills the pipe faster than it is emptied delays no limit: the copy is bounded.
        """
        for _ in range(CHUNKS):
            try:
                chunk = os.read(descriptor, CHUNK_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.write(chunk)
            if len(chunk) < CHUNK_BYTES:
                break
        return True

    def write(self, chunk: bytes) -> None:
        """Append output. A segment ends with a line; one longer than a quarter may be split."""
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        while chunk:
            if self._descriptor < 0:
                self._open()
            cut = chunk.find(b"\n", max(0, self._target_bytes - self._size - 1)) + 1
            part = chunk[: min(cut or len(chunk), self._segment_bytes - self._size)]
            chunk = chunk[len(part) :]
            full = self._size + len(part) >= self._segment_bytes
            self._append(part + b"\n" if full and not part.endswith(b"\n") else part)
            if full or len(part) == cut:
                self._close()

    def note(self, text: str) -> None:
        """Add a line of the step's own."""
        self.write(f"{chr(10) if self._inside_line else ''}berth: {text}\n".encode())

    def last_lines(self, count: int, chars: int) -> list[str]:
        """Return the last lines, without control characters."""
        text = self._tail.decode("utf-8", errors="replace").splitlines()[-count:]
        return ["".join(c if c.isprintable() else "\ufffd" for c in line)[:chars] for line in text]

    def close(self) -> None:
        """Make the output durable. A full disk may lose its end."""
        try:
            if self._descriptor >= 0:
                os.fsync(self._descriptor)
        except OSError:
            return
        finally:
            self._close()

    def _append(self, part: bytes) -> None:
        self.lines += part.count(b"\n")
        self._inside_line = not part.endswith(b"\n")
        view = memoryview(part)
        try:
            while view and self._descriptor >= 0:
                written = os.write(self._descriptor, view)
                self._size += written
                view = view[written:]
        except OSError:
            self._close()

    def _open(self) -> None:
        """Begin a segment; where it cannot be, output is lost until the next attempt."""
        name = f"{self._folder}/{NAME}{self.lines}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._size = 0
        try:
            self._descriptor = os.open(name, flags, 0o600)
        except OSError:
            return
        if name not in self._segments:
            self._segments.append(name)
        while len(self._segments) > SEGMENTS:
            try:
                os.unlink(self._segments.pop(1))
            except OSError:
                continue

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._size = 0
