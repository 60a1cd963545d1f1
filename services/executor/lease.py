"""Whether this process still reads its ledger: without that it must not keep anything running."""

from __future__ import annotations


class ReadLease:
    """Fresh means: at that time, everything that was in the ledger had been read."""

    def __init__(self, now_s: float) -> None:
        self._fresh_s = now_s
        self._asked_s = now_s
        self._end = 0
        self.lapsed = False

    def asked(self, asked_s: float, end: int) -> None:
        """The broker said that the ledger ended there, at or after that time."""
        self._asked_s, self._end = asked_s, end

    def read_to(self, next_offset: int) -> None:
        if next_offset >= self._end and self._asked_s > self._fresh_s:
            self._fresh_s = self._asked_s
            self.lapsed = False

    def lapses(self, now_s: float, lease_s: float) -> bool:
        """True once each time that nothing was heard for half the lease."""
        if self.lapsed or now_s - self._fresh_s <= lease_s / 2:
            return False
        self.lapsed = True
        return True
