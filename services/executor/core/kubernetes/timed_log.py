"""Output of a container from its log with times, each line once over streams that begin anew.

A kubelet gives a log from its present file on, or its lines from a second on. It rotates the file,
so that a place in it says nothing later; the time of a line, in nanoseconds, does.
"""

from __future__ import annotations

from datetime import datetime

MISSING = "[berth: lines may be missing here, as the log was rotated while its stream was away]\n"
LONGEST_LINE_BYTES = 64 * 1024
"""Of a line without an end so much is waited for; then it is passed on as it comes."""
Moment = tuple[int, int]
"""Seconds and nanoseconds."""


class TimedLog:
    """The lines of one log; `skip` are bytes of output that were passed on before."""

    def __init__(self, skip: int = 0) -> None:
        self._skip = skip
        self._passed = skip
        """Bytes of output passed on, for a log without times."""
        self._rest = b""
        self._in_line = False
        """The last line was passed on without its end."""
        self._last = ""
        """Time of the last line, as the log has it."""
        self._count = 0
        """Lines of that time that were passed on."""
        self._resumed: Moment | None = None
        """Up to that moment lines are those that were passed on; None: all are new."""
        self._again = 0
        """Lines of that moment that came again."""

    def begin(self) -> str:
        """Take a new stream; return the time that it begins with, empty for the whole log."""
        self._rest = b""
        self._in_line = False
        if not self._last:
            self._skip = self._passed
            return ""
        self._resumed, self._again = moment_of(self._last), 0
        return self._last

    def take(self, chunk: bytes) -> bytes:
        """Return the output of a chunk that is new: its whole lines, without their times."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        output = b"".join(self._line(line + b"\n") for line in lines)
        if len(self._rest) > LONGEST_LINE_BYTES:
            output += self._line(self._rest)
            self._in_line, self._rest = True, b""
        return self._counted(output)

    def end(self) -> bytes:
        """Return the output of a last line without an end, as the log is at its own."""
        rest, self._rest = self._rest, b""
        return self._counted(self._line(rest)) if rest else b""

    def _line(self, line: bytes) -> bytes:
        if self._in_line:
            self._in_line = not line.endswith(b"\n")
            return line
        time, _, text = line.partition(b" ")
        moment = moment_of(time.decode("ascii", errors="replace"))
        if moment is None:
            return line
        missing = b""
        if self._resumed is not None:
            if moment < self._resumed or (moment == self._resumed and self._is_again()):
                return b""
            if self._again < self._count:
                missing = MISSING.encode()
            self._resumed = None
        shown = time.decode()
        self._count = self._count + 1 if shown == self._last else 1
        self._last = shown
        return missing + text

    def _is_again(self) -> bool:
        self._again += 1
        return self._again <= self._count

    def _counted(self, output: bytes) -> bytes:
        """Return the output without what was passed on by an earlier reader."""
        new = output[self._skip :]
        self._skip -= len(output) - len(new)
        self._passed += len(new)
        return new


def moment_of(time: str) -> Moment | None:
    """Return a time of a log (RFC 3339, up to nanoseconds); None for another text."""
    whole, point, rest = time.partition(".")
    digits = rest.rstrip("Z") if rest.endswith("Z") else rest[: max(rest.find("+"), rest.find("-"))]
    if point and not (digits.isascii() and digits.isdecimal() and len(digits) <= 9):
        return None
    try:
        at = datetime.fromisoformat(whole + rest[len(digits) :] if point else time)
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    return int(at.timestamp()), int(digits.ljust(9, "0")) if point else 0
