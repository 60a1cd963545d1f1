"""Reports that are not acknowledged yet: numbered densely per incarnation, durable before sent."""

from __future__ import annotations

import json
import os
from collections import deque

from berth_agent.linux import files
from berth_agent.messages import MAX_REPORTS, NodeReport, read_node_report
from berth_agent.reading import MalformedMessage

COMPACT_LINES = 1000


class Outbox:
    """A file of JSON lines, the first of which names the incarnation. Used under a lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: deque[NodeReport] = deque()
        self._first_n = 1
        self._descriptor = -1
        self._lines = 0

    @property
    def first_n(self) -> int:
        """Number of the first report that is not acknowledged."""
        return self._first_n

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def open(self, incarnation: str) -> None:
        """Take up the reports of this incarnation; those of another are void. Raises OSError."""
        self._waiting.clear()
        self._first_n = 1
        lines = (files.read_bytes(self._path) or b"").split(b"\n")
        if _incarnation(lines[0]) == incarnation:
            # A line without an end was being written when the machine stopped: it was not sent.
            for line in lines[1:-1]:
                self._take(line)
        self._rewrite(incarnation)

    def add(self, report: NodeReport) -> None:
        """Make a report durable; it is sent later. Raises OSError, and takes nothing then."""
        line = json.dumps({"report": report.to_json()}).encode() + b"\n"
        end = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError(files.FULL[0], os.strerror(files.FULL[0]))
            os.fdatasync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, end)
            raise
        self._waiting.append(report)
        self._lines += 1

    def batch(self) -> tuple[int, tuple[NodeReport, ...]]:
        """Return the number of the first report and the oldest ones."""
        count = min(len(self._waiting), MAX_REPORTS)
        return self._first_n, tuple(self._waiting[place] for place in range(count))

    def acknowledge(self, n: int) -> None:
        """Drop the reports up to `n`; what a restart repeats is harmless."""
        while self._waiting and self._first_n <= n:
            self._waiting.popleft()
            self._first_n += 1
        self._append_acknowledged()

    def _append_acknowledged(self) -> None:
        line = json.dumps({"acknowledged": self._first_n - 1}).encode() + b"\n"
        try:
            os.write(self._descriptor, line)
        except OSError:
            return
        self._lines += 1

    def compact(self, incarnation: str) -> None:
        """Rewrite the file when it is long and all is acknowledged. Raises OSError."""
        if self._lines > COMPACT_LINES and self.is_empty:
            self._rewrite(incarnation)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _take(self, line: bytes) -> None:
        """Apply a line; a damaged one is passed over: its number was not acknowledged."""
        try:
            entry = json.loads(line)
            if "acknowledged" in entry:
                while self._waiting and self._first_n <= int(entry["acknowledged"]):
                    self._waiting.popleft()
                    self._first_n += 1
            elif "first_n" in entry:
                self._first_n = int(entry["first_n"])
            else:
                self._waiting.append(read_node_report(entry["report"], "report"))
        except (ValueError, TypeError, KeyError, MalformedMessage):
            return

    def _rewrite(self, incarnation: str) -> None:
        entries: list[dict[str, object]] = [
            {"incarnation": incarnation},
            {"first_n": self._first_n},
        ]
        entries += [{"report": report.to_json()} for report in self._waiting]
        content = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
        files.write_durable(self._path, content)
        self.close()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(entries)


def _incarnation(line: bytes) -> str:
    try:
        return str(json.loads(line)["incarnation"])
    except (ValueError, TypeError, KeyError):
        return ""
