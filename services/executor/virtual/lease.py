"""Leases of an executor: on having read the ledger, and on acknowledged heartbeats."""

from __future__ import annotations


class ReadLease:
    """A lease that is renewed by having read the whole ledger at some moment."""

    def __init__(self, now_s: float) -> None:
        self._fresh_s = now_s
        self._requested_s = now_s
        self._end = 0
        self.expired = False

    def set_end(self, requested_s: float, end: int) -> None:
        """Note the ledger's end, as of the request's time or later."""
        self._requested_s, self._end = requested_s, end

    def read_to(self, next_offset: int) -> None:
        if next_offset >= self._end and self._requested_s > self._fresh_s:
            self._fresh_s = self._requested_s
            self.expired = False

    def check(self, now_s: float, lease_s: float) -> bool:
        """Return True once whenever the ledger was not read for half the lease."""
        if self.expired or now_s - self._fresh_s <= lease_s / 2:
            return False
        self.expired = True
        return True


class HeartbeatLease:
    """The deadline of the workers of one pool: `lease_s` after the last acknowledged heartbeat.

    It counts from a time before the heartbeat was sent, by a clock that goes on while the machine
    is suspended. Once the deadline has passed, no late acknowledgement extends it.
    """

    def __init__(self, now_s: float) -> None:
        self._sent_s = now_s
        self.epoch = 0
        """Number of the incarnations that the lease is of; it rises when they register anew."""

    def begin(self, now_s: float) -> None:
        """Begin with new incarnations, at a time before their registration is sent."""
        self._sent_s = now_s
        self.epoch += 1

    def extend(self, epoch: int, sent_s: float, now_s: float, lease_s: float) -> None:
        """Note the acknowledgement, at `now_s`, of a heartbeat of that epoch."""
        if epoch == self.epoch and not self.has_passed(now_s, lease_s):
            self._sent_s = max(self._sent_s, sent_s)

    def has_passed(self, now_s: float, lease_s: float) -> bool:
        return now_s >= self._sent_s + lease_s
