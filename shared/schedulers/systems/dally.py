"""Dally (Sharma et al., arXiv 2401.16492): jobs wait for close GPUs as the network slows them down.

The publication has no code; what it leaves open is ours (decision 0073).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shared.performance.links import LinkTier
from shared.schedulers.closeness import Closeness, ClosenessRules
from shared.schedulers.delay_timers import DelayTimers, TimerRules
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Hooks,
    Memory,
    Need,
    Placements,
    free_by_type,
    running_allotments,
)
from shared.schedulers.view import CandidateJob, ClusterView, Placement


class Dally(Hooks):
    """Delay timers per tier, and stops of jobs that the network slows down less.

    A job of which no step is known takes the closest GPUs that are free, and is not moved.
    """

    name: ClassVar[str] = "dally"
    source: ClassVar[str] = "Sharma et al., arXiv 2401.16492"
    needs: ClassVar[tuple[Need, ...]] = ("steps",)
    decides: ClassVar[tuple[Decides, ...]] = ("order", "nodes")
    timers: ClassVar[TimerRules] = TimerRules(first_s=1800.0, longest_s=4 * 3600.0)
    rules: ClassVar[ClosenessRules] = ClosenessRules()
    stops: ClassVar[bool] = True
    """Whether jobs are stopped for others."""

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        """Return jobs by submission; what became of the last proposal is noted first."""
        observe(view, memory, DelayTimers(self.timers, memory, view.now_s))
        return super().rank(view, memory)

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        """Return all jobs: `place` decides by the tier of the free GPUs which of them get some."""
        running = running_allotments(view)
        free = free_by_type(view, running)
        allotments: Allotments = {}
        for job_id in ranked:
            job = view.job_by_id[job_id]
            types = [name for name in free if job.may_use(name)]
            if job_id in running:
                allotments[job_id] = running[job_id]
            elif types:
                roomiest = max(types, key=lambda name: free[name])
                allotments[job_id] = Allotment(roomiest, job.gpus)
        return allotments

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        offers = Offers(Closeness(view, self.rules), allotments, memory)
        timers = DelayTimers(self.timers, memory, view.now_s)
        accepted: dict[str, list[float]] = {}
        for job_id, allotment in allotments.items():
            job = view.job_by_id[job_id]
            if job.is_running:
                offers.move(job, allotment)
            elif (tier := offers.take(job, allotment, timers)) is not None:
                accepted[job_id] = [tier, allotment.gpus, offers.waited_s(job)]
        memory["accepted"], memory["decided_s"] = accepted, view.now_s
        return offers.placements

    def evict(
        self, view: ClusterView, unplaced: Sequence[str], placements: Placements, memory: Memory
    ) -> list[str]:
        """Return jobs that make room for the first one that closer GPUs speed up enough."""
        if not self.stops:
            return []
        closeness = Closeness(view, self.rules)
        free = {name: racks.free() for name, racks in closeness.racks.items()}
        for placement in placements.values():
            for node, gpus in placement:
                free[view.node_by_id[node].gpu_type][node] -= gpus
        others = [
            job
            for job_id in placements
            if is_settled(job := view.job_by_id[job_id], view, memory, self.rules)
            and placements[job_id] == job.placement
        ]
        for job_id in unplaced:
            job = view.job_by_id[job_id]
            for gpu_type in filter(job.may_use, free):
                allotment = Allotment(gpu_type, job.gpus)
                victims = closeness.victims(job, allotment, free[gpu_type], others)
                if victims:
                    return [own.job_id for own in victims]
        return []


class Offers:
    """The free GPUs of a decision, offered to one job after the other."""

    def __init__(self, closeness: Closeness, allotments: Allotments, memory: Memory) -> None:
        self.closeness = closeness
        self.memory = memory
        self.placements: Placements = {}
        self.free = {name: racks.free() for name, racks in closeness.racks.items()}
        for job_id in allotments:
            job = closeness.view.job_by_id[job_id]
            if job.is_running:
                self._give(job_id, job.placement)

    def move(self, job: CandidateJob, allotment: Allotment) -> None:
        """Move a running job to free GPUs on a closer tier, if that is worth it."""
        view, rules = self.closeness.view, self.closeness.rules
        if self.closeness.tier_of(job.placement) is LinkTier.NODE:
            return
        if not is_settled(job, view, self.memory, rules):
            return
        free = dict(self.free[allotment.gpu_type])
        for node, gpus in job.placement:
            free[node] += gpus
        offered = self.closeness.racks[allotment.gpu_type].closest(free, allotment.gpus)
        if offered is not None and self.closeness.is_worth_a_move(job, offered[0]):
            self.free[allotment.gpu_type] = free
            self._give(job.job_id, offered[1])

    def take(self, job: CandidateJob, allotment: Allotment, timers: DelayTimers) -> LinkTier | None:
        """Give a waiting job the closest GPUs that are free, unless it waits for closer ones."""
        racks = self.closeness.racks[allotment.gpu_type]
        offered = racks.closest(self.free[allotment.gpu_type], allotment.gpus)
        if offered is None:
            return None
        tier, placement = offered
        good = self.closeness.good_tier(job, allotment)
        if timers.declines(tier, good, allotment.gpus, self.waited_s(job)):
            return None
        self._give(job.job_id, placement)
        return tier

    def waited_s(self, job: CandidateJob) -> float:
        since_s: float = self.memory["waiting_s"].get(job.job_id, job.submit_s)
        return self.closeness.view.now_s - since_s

    def _give(self, job_id: str, placement: Placement) -> None:
        self.placements[job_id] = placement
        for node, gpus in placement:
            self.free[self.closeness.view.node_by_id[node].gpu_type][node] -= gpus


def observe(view: ClusterView, memory: Memory, timers: DelayTimers) -> None:
    """Note since when jobs wait or run on their GPUs, and the waits that the proposal ended."""
    decided_s = memory.get("decided_s", view.now_s)
    waiting, runs = memory.get("waiting_s", {}), memory.get("runs", {})
    memory["waiting_s"] = {
        job.job_id: waiting.get(job.job_id, decided_s if job.held_s else job.submit_s)
        for job in view.jobs
        if not job.is_running
    }
    for job_id, (tier, gpus, wait_s) in memory.get("accepted", {}).items():
        if gpus > 1 and job_id not in memory["waiting_s"]:
            timers.note(LinkTier(tier), gpus, wait_s, decided_s)
    fresh = {job.job_id: [job.restarts, decided_s] for job in view.jobs if job.is_running}
    memory["runs"] = {
        job_id: known if (known := runs.get(job_id)) and known[0] == run[0] else run
        for job_id, run in fresh.items()
    }


def is_settled(job: CandidateJob, view: ClusterView, memory: Memory, rules: ClosenessRules) -> bool:
    """Return whether a job runs and has been on its GPUs for the least time."""
    run = memory["runs"].get(job.job_id)
    return run is not None and view.now_s - run[1] >= rules.least_run_s
