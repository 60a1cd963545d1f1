"""The time that a thread waited for a processor though it could have run, by Linux (schedstat).

Where other programs use the processors of a host, each thread takes longer for no reason of its
own. A thread that was stopped, or that computes slowly, does not wait for a processor.
"""

from __future__ import annotations

import os

SCHEDSTAT = "/proc/thread-self/schedstat"
LONGEST = 128
"""Bytes of the file: three numbers."""


class RunDelay:
    """Of the thread that makes it; nothing is known where the system does not count it."""

    def __init__(self, path: str = SCHEDSTAT) -> None:
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return

    def read_s(self) -> float | None:
        """Return the s so far; None if unknown. Any thread may call it."""
        if self._file < 0:
            return None
        try:
            return int(os.pread(self._file, LONGEST, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __del__(self) -> None:
        self.close()
