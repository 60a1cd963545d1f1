"""Limits that end a worker: an order, the lease of its node, its walltime. Pure."""

from __future__ import annotations

from berth_agent.step.ending import Ending, LeaseWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from berth_agent.step.spec import Spec

WARNING_MS = 60_000
"""Longest time before the walltime at which the worker is warned, unless its grace is longer."""
SHORT_WARNING_MS = 5_000
"""Least time of it, at most half of the walltime: a tenth of a short one is too late."""


class Limits:
    """The end of a worker that started at `started_ms`, and its reason."""

    __slots__ = ("_grace_ms", "_started_ms", "_walltime_ms", "_warning_ms", "_warned", "ending")

    def __init__(self, spec: Spec, started_ms: int) -> None:
        self.ending = Ending()
        self._grace_ms = round(spec.grace_s * 1000)
        self._walltime_ms = None if spec.walltime_s is None else round(spec.walltime_s * 1000)
        self._warning_ms = _warning_ms(self._walltime_ms or 0, self._grace_ms)
        self._started_ms = started_ms
        self._warned = False

    def apply(self, tombstone: dict[str, Any] | None, lease: LeaseWatch, now_ms: int) -> None:
        """Request the end where an order, the lease or the walltime says so."""
        if tombstone is not None:
            grace_ms = round(float(tombstone["grace_s"]) * 1000)
            self.ending.request(str(tombstone["reason"]), now_ms, grace_ms)
        self._apply_lease(lease, now_ms)
        if self._walltime_ms is not None and now_ms >= self._started_ms + self._walltime_ms:
            self.ending.request("walltime", now_ms, self._grace_ms)

    def _apply_lease(self, lease: LeaseWatch, now_ms: int) -> None:
        """End the worker at the lease's deadline; its grace lies before that."""
        terminate_ms = lease.terminate_at_ms(self._grace_ms)
        if lease.is_over(now_ms):
            self.ending.request("fenced", now_ms, 0)
        elif terminate_ms is not None and now_ms >= terminate_ms and lease.deadline_ms is not None:
            self.ending.request("fenced", now_ms, lease.deadline_ms - now_ms)

    def warning(self, now_ms: int) -> str:
        """Return the warning that is due before the walltime, once."""
        if self._walltime_ms is None or self._warned:
            return ""
        left_ms = self._started_ms + self._walltime_ms - now_ms
        if left_ms > self._warning_ms:
            return ""
        self._warned = True
        walltime = f"the walltime of {self._walltime_ms / 1000:g} s"
        return (
            f"{walltime} ends in {left_ms / 1000:.1f} s" if left_ms > 0 else f"{walltime} is over"
        )

    def next_ms(self, lease: LeaseWatch, now_ms: int) -> int:
        """Return the ms until the next known time at which something is due."""
        times = [self.ending.kill_at_ms, lease.deadline_ms]
        times.append(lease.terminate_at_ms(self._grace_ms))
        if self._walltime_ms is not None:
            over_ms = self._started_ms + self._walltime_ms
            times += [over_ms, over_ms - self._warning_ms]
        return min((at - now_ms for at in times if at is not None and at > now_ms), default=1000)


def _warning_ms(walltime_ms: int, grace_ms: int) -> int:
    """Return how long before the end of the walltime the warning is due, ms.

    The grace is the time in which a job can save its work; at most half of the walltime goes.
    """
    least_ms = max(grace_ms, SHORT_WARNING_MS, min(WARNING_MS, walltime_ms // 10))
    return min(least_ms, walltime_ms // 2)
