"""Tiresias (Gu et al., NSDI'19) whole: queues by attained service, Gittins indices, and skew.

`tiresias.py` is the form of it that Pollux' evaluation tuned, with two queues.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence, Set
from itertools import accumulate
from typing import ClassVar

from shared.schedulers.consolidated import first_fit, free_of_type
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Hooks,
    Memory,
    Need,
    Placements,
    admit,
)
from shared.schedulers.placing import emptiest_first, roomiest_nodes, take
from shared.schedulers.view import CandidateJob, ClusterView, gpus_of

SOURCE = "Gu et al., NSDI'19"
LIMITS_GPU_S = (3_250.0, 7_200.0)
"""Attained GPU seconds with which a job leaves a queue; the last queue has no limit."""
SKEWED = 0.5
"""Skew from which a job has to be on as few nodes as possible; the publication has no number."""
QUANTUM_GPU_S = 3_250.0
KEPT_SERVICES = 2_000


class TiresiasLas(Hooks):
    """2D-LAS: a job is in the queue of its GPU seconds, and stays in front while it runs.

    `starvation`: a stopped job that waits so many times as long as it has run begins again in the
    first queue; 0, as in the released code: never.
    """

    name: ClassVar[str] = "tiresias_las"
    source: ClassVar[str] = f"{SOURCE}, 2D-LAS"
    needs: ClassVar[tuple[Need, ...]] = ("skew",)
    decides: ClassVar[tuple[Decides, ...]] = ("order", "nodes")
    limits_gpu_s: ClassVar[tuple[float, ...]] = LIMITS_GPU_S
    starvation: ClassVar[float] = 0.0

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        queues = self.queues(view, memory)
        memory["queues"] = queues
        return [job_id for queue in queues for job_id in queue]

    def queues(self, view: ClusterView, memory: Memory) -> list[list[str]]:
        """Return the queues of now; what runs stays in front of its queue, what changes queues
        goes to the end of the other one."""
        earlier = memory.get("queues") or [[] for _ in range(len(self.limits_gpu_s) + 1)]
        left = [[name for name in queue if name in view.job_by_id] for queue in earlier]
        queues = [
            sorted(queue, key=lambda name: not view.job_by_id[name].is_running) for queue in left
        ]
        known = {name for queue in queues for name in queue}
        arrived = [job for job in view.jobs if job.job_id not in known]
        arrived.sort(key=lambda job: (job.submit_s, job.job_id))
        queues[0] += [job.job_id for job in arrived]
        self.promote(view, queues, memory)
        for number, limit in enumerate(self.limits_gpu_s):
            for name in list(queues[number]):
                if attained_gpu_s(view.job_by_id[name], memory) >= limit:
                    queues[number].remove(name)
                    queues[number + 1].append(name)
        return queues

    def promote(self, view: ClusterView, queues: list[list[str]], memory: Memory) -> None:
        stopped_s: dict[str, float] = memory.setdefault("stopped_s", {})
        begun: dict[str, list[float]] = memory.setdefault("begun", {})
        for name in [*stopped_s, *begun]:
            if name not in view.job_by_id:
                stopped_s.pop(name, None)
                begun.pop(name, None)
        for job in view.jobs:
            ran_s = job.held_s - begun.get(job.job_id, [0.0, 0.0])[1]
            if job.is_running or ran_s <= 0:
                stopped_s.pop(job.job_id, None)
                continue
            waited_s = view.now_s - stopped_s.setdefault(job.job_id, view.now_s)
            is_starved = self.starvation > 0 and waited_s >= self.starvation * ran_s
            if is_starved and job.job_id not in queues[0]:
                begun[job.job_id] = [job.held_gpu_s, job.held_s]
                next(queue for queue in queues if job.job_id in queue).remove(job.job_id)
                queues[0].append(job.job_id)

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return admit(view, ranked, {})

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        """Place skewed jobs on as few nodes as possible or not at all, and the others on any.

        What a job holds it keeps, unless a skewed one then fits nowhere.
        """
        skewed = {
            name for name in allotments if (view.job_by_id[name].estimates.skew or 0.0) >= SKEWED
        }
        if not skewed:
            return emptiest_first(view, allotments)
        kept = by_skew(view, allotments, skewed, keeps=True)
        is_placed = skewed <= kept.keys()
        return kept if is_placed else by_skew(view, allotments, skewed, keeps=False)

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        """Return when the first job reaches the limit of its queue."""
        times = []
        for limit, queue in zip(self.limits_gpu_s, memory["queues"], strict=False):
            for name in queue:
                if name in placements:
                    left = limit - attained_gpu_s(view.job_by_id[name], memory)
                    times.append(view.now_s + math.ceil(left / gpus_of(placements[name])))
        return min(times, default=None)


class TiresiasGittins(TiresiasLas):
    """2D-Gittins: within a queue by the index over the services of jobs that have ended.

    Until one has ended it is 2D-LAS with queues in order of submission.
    """

    name: ClassVar[str] = "tiresias_gittins"
    source: ClassVar[str] = f"{SOURCE}, 2D-Gittins over ended jobs"

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        services = note_services(view, memory)
        sums = [0.0, *accumulate(services)]
        memory["queues"] = [
            sorted(
                queue,
                key=lambda name: (
                    -gittins_index(services, sums, view.job_by_id[name].held_gpu_s),
                    view.job_by_id[name].submit_s,
                    name,
                ),
            )
            for queue in self.queues(view, memory)
        ]
        return [name for queue in memory["queues"] for name in queue]


def by_skew(view: ClusterView, allotments: Allotments, skewed: Set[str], keeps: bool) -> Placements:
    """Return placements, of skewed jobs first, the largest first."""
    free = {name: free_of_type(view, name) for name in view.gpus_of_type}
    largest = {name: max(own.values(), default=0) for name, own in free.items()}
    placements: Placements = {}
    if keeps:
        for name, own in allotments.items():
            held = view.job_by_id[name].placement
            if held and Allotment(view.type_of(held) or "", gpus_of(held)) == own:
                take(free[own.gpu_type], held)
                placements[name] = held
    in_order = sorted(allotments, key=lambda name: (name not in skewed, -allotments[name].gpus))
    for name in in_order:
        own = allotments[name]
        of_type = free[own.gpu_type]
        if name in placements or own.gpus > sum(of_type.values()):
            continue
        if name in skewed:
            placement = first_fit(of_type, largest[own.gpu_type], own.gpus)
        else:
            placement = roomiest_nodes(of_type, own.gpus)
        if placement:
            take(of_type, placement)
            placements[name] = placement
    return placements


def attained_gpu_s(job: CandidateJob, memory: Memory) -> float:
    """Return the GPU seconds that count, those since the last promotion."""
    begun: list[float] = memory.get("begun", {}).get(job.job_id, [0.0, 0.0])
    return job.held_gpu_s - begun[0]


def note_services(view: ClusterView, memory: Memory) -> list[float]:
    """Return the services of ended jobs, ascending; the last that was seen of each."""
    services: list[float] = memory.setdefault("services", [])
    for job_id, service in memory.get("held", {}).items():
        if job_id not in view.job_by_id and service > 0 and len(services) < KEPT_SERVICES:
            insort(services, service)
    memory["held"] = {job.job_id: job.held_gpu_s for job in view.jobs}
    return services


def gittins_index(services: Sequence[float], sums: Sequence[float], attained: float) -> float:
    """Return the chance that a job ends in the next quantum per expected service in it.

    `services` ascend, `sums` are those of the first 0, 1, 2 ... of them. 0 beyond the largest. The
    released code takes whole services for their rests; here what was attained is taken off.
    """
    count = len(services)
    first = bisect_right(services, attained)
    last = bisect_right(services, attained + QUANTUM_GPU_S)
    if first == count:
        return 0.0
    ended_gpu_s = sums[last] - sums[first] - attained * (last - first)
    expected_gpu_s = ended_gpu_s + QUANTUM_GPU_S * (count - last)
    return (last - first) / max(expected_gpu_s, 1e-9)
