"""Freshness of the ledger: a process that cannot read it must stop its workers."""

from __future__ import annotations


class ReadLease:
    """A lease that is renewed by having read the whole ledger at some moment."""

    def __init__(self, now_s: float) -> None:
        self._fresh_s = now_s
        self._requested_s = now_s
        self._end = 0
        self.lapsed = False

    def set_end(self, requested_s: float, end: int) -> None:
        """Note the ledger's end, as of the request's time or later."""
        self._requested_s, self._end = requested_s, end

    def read_to(self, next_offset: int) -> None:
        if next_offset >= self._end and self._requested_s > self._fresh_s:
            self._fresh_s = self._requested_s
            self.lapsed = False

    def check(self, now_s: float, lease_s: float) -> bool:
        """Return True once whenever the ledger was not read for half the lease."""
        if self.lapsed or now_s - self._fresh_s <= lease_s / 2:
            return False
        self.lapsed = True
        return True
