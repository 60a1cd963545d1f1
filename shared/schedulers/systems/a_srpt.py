"""A-SRPT (Luo et al., INFOCOM'25): the order of a virtual machine, and gangs that wait.

All GPUs together are one machine on which jobs run shortest remaining first; in the order in which
they end there they start here, and are never stopped. A job that is much slower over several nodes
waits for nodes that hold it well, for a part of its length at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from shared.performance.footprint import Footprint
from shared.schedulers.consolidated import first_fit, free_of_type
from shared.schedulers.hooks import (
    Allotment,
    Allotments,
    Decides,
    Hooks,
    Memory,
    Need,
    Placements,
    running_allotments,
)
from shared.schedulers.placing import FreeGpus, roomiest_nodes, take
from shared.schedulers.view import CandidateJob, ClusterView, Placement
from shared.schedulers.virtual_machine import Arrival, advance

LIGHT = 1.1
"""Ratio of the slowest to the fastest iteration up to which a gang starts on any free GPUs."""
PACKED = 1.25
"""Ratio to the fastest iteration up to which a placement is packed; the publication's constants
are not public, these are in the middle of what is usual to try."""
DELAY = 0.25
"""Part of its length that a gang waits for a packed placement."""
FIRST_GUESS_S = 3600.0


class Choice(NamedTuple):
    """Nodes for a gang; `slowness` is the length of an iteration relative to the fastest one."""

    gpu_type: str
    placement: Placement
    slowness: float


class ASrpt(Hooks):
    """If nothing that has ended on the machine waits, its next jobs start on GPUs that are free.

    A job of unknown length is taken to be as long as the mean of those that have ended. Of one of
    unknown rates every placement is packed.
    """

    name: ClassVar[str] = "a_srpt"
    source: ClassVar[str] = "Luo et al., INFOCOM'25, placements by measured rates"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("order", "type", "nodes")

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        """Return the jobs that have ended on the machine in that order, then by their rest."""
        note_ended(view, memory)
        known = {*memory.setdefault("queue", {}), *memory.setdefault("rest_s", {})}
        arrivals = [
            Arrival(job.submit_s, job.job_id, machine_s(view, job, memory))
            for job in view.jobs
            if job.job_id not in known and not job.is_running
        ]
        ended, rest_s = advance(memory["rest_s"], arrivals, memory.get("at_s", 0.0), view.now_s)
        memory["at_s"] = view.now_s
        memory["queue"].update(ended)
        memory["rest_s"] = rest_s
        for noted in (memory["queue"], memory["rest_s"]):
            for job_id in [name for name in noted if name not in view.job_by_id]:
                del noted[job_id]
        others = sorted(rest_s, key=lambda job_id: (rest_s[job_id], job_id))
        in_order = [*memory["queue"], *others]
        return [*in_order, *(job.job_id for job in view.jobs if job.job_id not in set(in_order))]

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        allotted = running_allotments(view)
        free = {name: free_of_type(view, name) for name in view.gpus_of_type}
        for job_id, own in allotted.items():
            take(free[own.gpu_type], view.job_by_id[job_id].placement)
        memory["chosen"] = {}
        waiting = [name for name in ranked if name not in allotted]
        queued = [name for name in waiting if name in memory["queue"]]
        is_empty = not queued
        for job_id in waiting if is_empty else queued:
            job = view.job_by_id[job_id]
            choice = best_choice(view, job, free)
            if choice is None or (
                choice.slowness > PACKED and view.now_s < waits_until_s(view, job, memory)
            ):
                continue
            take(free[choice.gpu_type], choice.placement)
            allotted[job_id] = Allotment(choice.gpu_type, job.gpus)
            memory["chosen"][job_id] = [list(part) for part in choice.placement]
            memory["queue"].setdefault(job_id, view.now_s)
            memory["rest_s"].pop(job_id, None)
        return allotted

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        chosen: dict[str, list[Any]] = memory["chosen"]
        new = {job_id: tuple((node, gpus) for node, gpus in own) for job_id, own in chosen.items()}
        return {job_id: new.get(job_id, view.job_by_id[job_id].placement) for job_id in allotments}

    def wake_s(self, view: ClusterView, placements: Placements, memory: Memory) -> float | None:
        """Return when the next job ends on the machine, or has waited long enough."""
        times = [view.now_s + min(memory["rest_s"].values(), default=math.inf)]
        for job_id in memory["queue"]:
            if job_id not in placements:
                times.append(waits_until_s(view, view.job_by_id[job_id], memory))
        later = [time_s for time_s in times if view.now_s < time_s < math.inf]
        return min(later, default=None)


def length_s(view: ClusterView, job: CandidateJob, memory: Memory) -> float:
    """Return the seconds of the rest on the best placement."""
    left, fastest = job.estimates.work_left, fastest_rate(view, job)
    if left is None or fastest is None:
        lengths: list[float] = memory.get("lengths", [0, 0.0])
        return lengths[1] / lengths[0] if lengths[0] else FIRST_GUESS_S
    return left / fastest


def machine_s(view: ClusterView, job: CandidateJob, memory: Memory) -> float:
    """Return the seconds that the job needs all GPUs together."""
    gpus = max(sum(view.gpus_of_type.values()), 1)
    return length_s(view, job, memory) * job.gpus / gpus


def waits_until_s(view: ClusterView, job: CandidateJob, memory: Memory) -> float:
    """Return until when a gang waits for a packed placement."""
    since_s: float = memory["queue"].get(job.job_id, view.now_s)
    return since_s + DELAY * length_s(view, job, memory)


def fastest_rate(view: ClusterView, job: CandidateJob) -> float | None:
    table = job.estimates.rates
    if table is None:
        return None
    types = [name for name in view.gpus_of_type if job.may_use(name)]
    rates = [table.consolidated_rate(name, job.gpus) or 0.0 for name in types]
    return max(rates, default=0.0) or None


def best_choice(view: ClusterView, job: CandidateJob, free: dict[str, FreeGpus]) -> Choice | None:
    """Return the fastest placement on free GPUs."""
    choices = sorted(choices_of(view, job, free), key=lambda choice: choice.slowness)
    return choices[0] if choices else None


def choices_of(view: ClusterView, job: CandidateJob, free: dict[str, FreeGpus]) -> Iterator[Choice]:
    """Yield a placement by type: on as few nodes as can be, else on the roomiest ones."""
    fastest, table = fastest_rate(view, job), job.estimates.rates
    for name, of_type in free.items():
        if not job.may_use(name) or sum(of_type.values()) < job.gpus:
            continue
        largest = max(node.gpus for node in view.nodes if node.gpu_type == name)
        placement = first_fit(of_type, largest, job.gpus) or roomiest_nodes(of_type, job.gpus)
        if fastest is None or table is None:
            yield Choice(name, placement, 1.0)
            continue
        rate = table.rate(Footprint(name, tuple(gpus for _, gpus in placement), largest))
        if rate is None:
            rate = table.consolidated_rate(name, job.gpus)
        if rate:
            slowness = fastest / rate
            yield Choice(name, placement, 1.0 if slowness <= LIGHT else slowness)


def note_ended(view: ClusterView, memory: Memory) -> None:
    """Add the lengths of jobs that have ended to their number and sum."""
    lengths: list[float] = memory.setdefault("lengths", [0, 0.0])
    for job_id, held_s in memory.get("held_s", {}).items():
        if job_id not in view.job_by_id and held_s > 0:
            lengths[0] += 1
            lengths[1] += held_s
    memory["held_s"] = {job.job_id: job.held_s for job in view.jobs}
