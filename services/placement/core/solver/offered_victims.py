"""The running jobs that a plan of the window may stop, and what each of them holds on its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.placement.core.pool.allocations import slots_of
from services.placement.core.pool.job import Job
from services.placement.core.round.plan import Plan
from services.placement.core.solver.instance import VictimShare
from services.placement.core.solver.window import VICTIMS, Window, is_whole


@dataclass(frozen=True, slots=True)
class OfferedVictims:
    """Victims in the order of their numbers in the instance."""

    jobs: dict[str, Job] = field(default_factory=dict)
    """By job id."""
    shares: dict[str, list[VictimShare]] = field(default_factory=dict)
    """Node id -> the shares of victims there."""

    def numbers(self) -> dict[str, int]:
        """Return the number of each victim by job id."""
        return {job_id: number for number, job_id in enumerate(self.jobs)}

    def offer(self, job: Job) -> None:
        """Add the job unless it is there already or the limit is reached."""
        if len(self.jobs) < VICTIMS:
            self.jobs.setdefault(job.job_id, job)

    def note_shares(self) -> None:
        for number, job in enumerate(self.jobs.values()):
            parts: dict[str, list[int]] = {}
            for slot in slots_of(job):
                part = parts.setdefault(slot.node_id, [0, 0, 0])
                part[0] += len(slot.gpus)
                part[1] += slot.cpu_milli
                part[2] += slot.mem_mib
            for name, (gpus, cpu, mem) in parts.items():
                self.shares.setdefault(name, []).append(VictimShare(number, gpus, cpu, mem))


def offer_victims(window: Window, greedy: Plan) -> OfferedVictims:
    """Return greedy's victims first, then those of the window's jobs; none where no job has any."""
    offered = OfferedVictims()
    if any(candidate.victims for candidate in window.candidates):
        chosen = [eviction.job for eviction in greedy.evictions if is_whole(eviction.job)]
        for job in [*chosen, *(job for one in window.candidates for job in one.victims)]:
            offered.offer(job)
    offered.note_shares()
    return offered
