"""Ends of workers: their times and reasons. Pure; the clocks passed in are ms of CLOCK_BOOTTIME."""

from __future__ import annotations

GRACE_MS = 30_000
"""Longest time between SIGTERM and a fencing deadline."""
JUMP_MS = 2_000
"""Least forward jump of the wall clock that counts as a pause of the machine."""


class Ending:
    """The end of one worker: the first reason counts, the earliest kill holds."""

    __slots__ = ("kill_at_ms", "reason", "terminated")

    def __init__(self) -> None:
        self.reason = ""
        self.kill_at_ms: int | None = None
        self.terminated = False

    def request(self, reason: str, now_ms: int, grace_ms: int) -> None:
        """End the worker within the grace; an earlier end is never put off."""
        kill_at_ms = now_ms + max(0, grace_ms)
        if self.kill_at_ms is None or kill_at_ms < self.kill_at_ms:
            self.kill_at_ms = kill_at_ms
        self.reason = self.reason or reason

    def signal_at(self, now_ms: int) -> str:
        """Return what to send now: `kill`, `term` (once) or nothing."""
        if self.kill_at_ms is None:
            return ""
        if now_ms >= self.kill_at_ms:
            return "kill"
        if self.terminated:
            return ""
        self.terminated = True
        return "term"


class LeaseWatch:
    """The fencing deadline of one worker, as the step sees it."""

    __slots__ = (
        "_jump_ms",
        "_jumped_at_ms",
        "_last",
        "_over",
        "deadline_ms",
        "incarnation",
        "length_ms",
    )

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        self.deadline_ms: int | None = 0
        """Absent: the worker is kept whatever happens."""
        self.length_ms: int | None = None
        """Length of the lease, if it is known."""
        self._over = False
        self._jump_ms = 0
        self._jumped_at_ms = 0
        self._last: tuple[int, int] | None = None

    def begin(self, incarnation: str, deadline_ms: int | None) -> None:
        """Take the first deadline."""
        self._over = incarnation != self.incarnation
        self.deadline_ms = deadline_ms

    def renew(self, incarnation: str, deadline_ms: int | None, sent_ms: int, now_ms: int) -> None:
        """Take a later deadline, which follows from a heartbeat sent at `sent_ms`.

        A deadline that has passed is never extended; another incarnation ends this worker.
        """
        self._over = self._over or incarnation != self.incarnation or self.is_over(now_ms)
        if self._over:
            return
        self.deadline_ms = deadline_ms
        if sent_ms >= self._jumped_at_ms:
            self._jump_ms = 0

    def observe(self, boot_ms: int, wall_ms: int) -> None:
        """Compare the clocks: what the wall clock gained may be a pause of the virtual machine."""
        if self._last is not None:
            jump_ms = (wall_ms - self._last[1]) - (boot_ms - self._last[0])
            if jump_ms >= JUMP_MS:
                self._jump_ms += jump_ms
                self._jumped_at_ms = boot_ms
        self._last = (boot_ms, wall_ms)

    def is_over(self, now_ms: int) -> bool:
        """Return whether the worker must not live any more."""
        return self._over or (self.deadline_ms is not None and now_ms >= self.deadline_ms)

    def is_doubtful(self, now_ms: int) -> bool:
        """Return whether the deadline may have passed during a pause of the whole node."""
        return self.deadline_ms is not None and now_ms >= self.deadline_ms - self._jump_ms

    def may_start(self, now_ms: int) -> bool:
        return not self.is_over(now_ms) and not self.is_doubtful(now_ms)

    def terminate_at_ms(self, grace_ms: int) -> int | None:
        """Return when SIGTERM is due so that the grace lies before the deadline.

        A lease shorter than a minute leaves half of itself: else no worker could ever run.
        """
        if self.deadline_ms is None:
            return None
        half_ms = GRACE_MS if self.length_ms is None else self.length_ms // 2
        return self.deadline_ms - min(grace_ms, GRACE_MS, half_ms)
