"""Deficits of the guard: the cost of the levels of each job, less the time that they have saved.

A job that is slow again after a level was applied has perhaps a fault that no level helps. So the
costs are carried over its attempts, and paid for by the time in which the job runs without a fault,
at the share of each second that the fault took before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from services.failslow.core.mitigation.policy import lost_share

JOBS_KEPT = 10_000
"""Jobs with a deficit, the oldest of which are forgotten."""


@dataclass(slots=True)
class Deficit:
    """Times are cluster seconds; `since_s` is None while the job is slow or does not run."""

    cost_s: float = 0.0
    share: float = 0.0
    """The part of each second that is saved."""
    since_s: float | None = None

    def at(self, now_s: float) -> float:
        ran_s = 0.0 if self.since_s is None else max(0.0, now_s - self.since_s)
        return max(0.0, self.cost_s - self.share * ran_s)


@dataclass(slots=True)
class DeficitBook:
    """Deficits above zero, by job."""

    jobs: dict[str, Deficit] = field(default_factory=dict)

    def at(self, job_id: str, now_s: float) -> float:
        deficit = self.jobs.get(job_id)
        return deficit.at(now_s) if deficit else 0.0

    def charge(self, job_id: str, cost_s: float, slowdown: float, now_s: float) -> None:
        """Add the cost of a level against a slowdown; the job runs well from now on."""
        self.pause(job_id, now_s)
        deficit = self.jobs.setdefault(job_id, Deficit())
        deficit.cost_s += cost_s
        deficit.share, deficit.since_s = lost_share(slowdown), now_s
        while len(self.jobs) > JOBS_KEPT:
            del self.jobs[next(iter(self.jobs))]

    def pause(self, job_id: str, now_s: float) -> None:
        """Note that the job is slow, or stops; a level that has paid for itself is forgotten."""
        deficit = self.jobs.get(job_id)
        if deficit is None:
            return
        deficit.cost_s, deficit.since_s = deficit.at(now_s), None
        if deficit.cost_s == 0.0:
            del self.jobs[job_id]

    def resume(self, job_id: str, now_s: float) -> None:
        """Note that the job runs, and is not known to be slow."""
        if (deficit := self.jobs.get(job_id)) is not None and deficit.since_s is None:
            deficit.since_s = now_s
