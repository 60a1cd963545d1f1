"""Reports that are not acknowledged yet: numbered densely per incarnation, durable before sent."""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import dataclass

from berth_agent.core.reports import shorten_report
from berth_agent.linux import files
from berth_agent.messages import MAX_REPORTS, NodeReport, ReadyReport, read_node_report
from berth_agent.reading import MalformedMessage

COMPACT_LINES = 1000
SEPARATOR = b", "
BATCH_BYTES = 256 * 1024
"""Encoded reports of one request: half of what an executor takes."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A report that is not acknowledged, and its JSON, which escapes make up to 12 times as long
    as the text."""

    report: NodeReport
    content: bytes


class Outbox:
    """A file of JSON lines, the first of which names the incarnation. Used under a lock."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._waiting: deque[_Waiting] = deque()
        self._first_n = 1
        self._most_reports = MAX_REPORTS
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
        """Make a report durable; it is sent later. One that waits already is not added again.

        Raises OSError, and takes nothing then.
        """
        waiting = _encoded(report)
        if any(present.content == waiting.content for present in self._waiting):
            return
        line = _line(waiting)
        end = os.fstat(self._descriptor).st_size
        try:
            if os.write(self._descriptor, line) != len(line):
                raise OSError(files.FULL[0], os.strerror(files.FULL[0]))
            os.fdatasync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, end)
            raise
        self._waiting.append(waiting)
        self._lines += 1

    def holds_ready(self, allocation_id: str) -> bool:
        """Return whether the report that a worker is ready is not acknowledged."""
        waiting = (one.report for one in self._waiting if isinstance(one.report, ReadyReport))
        return any(report.allocation_id == allocation_id for report in waiting)

    def batch(self) -> tuple[int, tuple[NodeReport, ...]]:
        """Return the number of the first report and the oldest ones, bounded in bytes."""
        reports: list[NodeReport] = []
        size_bytes = 0
        for waiting in self._waiting:
            size_bytes += len(waiting.content) + len(SEPARATOR)
            if reports and (size_bytes > BATCH_BYTES or len(reports) >= self._most_reports):
                break
            reports.append(waiting.report)
        return self._first_n, tuple(reports)

    def shrink(self, count: int) -> bool:
        """Make the next batch half as long as one of `count` reports, which was too large.

        A report that is too large by itself loses its output, and then its detail. Returns False
        where nothing is left to lose.
        """
        self._most_reports = max(1, count // 2)
        if count > 1 or not self._waiting:
            return True
        shorter = shorten_report(self._waiting[0].report)
        if shorter is not None:
            self._waiting[0] = _encoded(shorter)
        return shorter is not None

    def acknowledge(self, n: int) -> None:
        """Drop the reports up to `n`; what a restart repeats is harmless."""
        while self._waiting and self._first_n <= n:
            self._waiting.popleft()
            self._first_n += 1
        self._most_reports = min(MAX_REPORTS, 2 * self._most_reports)
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
                self._waiting.append(_encoded(read_node_report(entry["report"], "report")))
        except (ValueError, TypeError, KeyError, MalformedMessage):
            return

    def _rewrite(self, incarnation: str) -> None:
        heads = ({"incarnation": incarnation}, {"first_n": self._first_n})
        lines = [json.dumps(head).encode() + b"\n" for head in heads]
        lines += [_line(waiting) for waiting in self._waiting]
        files.write_durable(self._path, b"".join(lines))
        self.close()
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._lines = len(lines)


def _encoded(report: NodeReport) -> _Waiting:
    return _Waiting(report, json.dumps(report.to_json()).encode())


def _line(waiting: _Waiting) -> bytes:
    return b'{"report": ' + waiting.content + b"}\n"


def _incarnation(line: bytes) -> str:
    try:
        return str(json.loads(line)["incarnation"])
    except (ValueError, TypeError, KeyError):
        return ""
