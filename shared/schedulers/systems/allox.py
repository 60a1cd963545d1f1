"""AlloX (Le et al., EuroSys'20) as Gavel's evaluation has it: jobs of one GPU, matched by time.

A waiting job is matched to a place in the order of a free GPU, the last place costing its time
once, the one before twice, and so on, plus its wait; that minimises the mean completion time. The
first job of each GPU gets it until its end, the others are matched again.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from shared.schedulers.hooks import Decides, Memory, Need
from shared.schedulers.matching import cheapest_assignment
from shared.schedulers.time_share_rounds import Shares, TimeShareRounds, rates_of
from shared.schedulers.view import CandidateJob, ClusterView

LEAST_RATE = 1e-10
RECOMPUTE_S = 1920.0
"""Least time between two matchings in Gavel's released simulator."""


class AlloX(TimeShareRounds):
    """Gangs of more than one GPU wait until `realise` has GPUs that no share claims."""

    name: ClassVar[str] = "allox"
    source: ClassVar[str] = "Le et al., EuroSys'20, in Narayanan et al., OSDI'20"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("type",)
    recompute_s: ClassVar[float] = RECOMPUTE_S
    most_waiting: ClassVar[int] = 64

    def shares(self, view: ClusterView, memory: Memory) -> Shares:
        held: dict[str, str] = {
            job_id: name
            for job_id, name in memory.get("held", {}).items()
            if job_id in view.job_by_id
        }
        workers = [
            name
            for name, gpus in view.gpus_of_type.items()
            for _ in range(gpus - list(held.values()).count(name))
        ]
        waiting = [job for job in view.jobs if job.job_id not in held and job.gpus == 1]
        waiting.sort(key=lambda job: job.submit_s)
        held.update(first_jobs(view, waiting, workers))
        memory["held"] = held
        return {
            job.job_id: {held[job.job_id]: 1.0} if job.job_id in held else {} for job in view.jobs
        }


def first_jobs(
    view: ClusterView, waiting: list[CandidateJob], workers: list[str]
) -> dict[str, str]:
    """Return the type of the first job of each free GPU."""
    if not waiting or not workers:
        return {}
    types = list(view.gpus_of_type)
    column = [types.index(name) for name in workers]
    row = {job.job_id: number for number, job in enumerate(view.jobs)}
    rates = rates_of(view)[[row[job.job_id] for job in waiting]][:, column]
    left = np.array([job.estimates.work_left or 1.0 for job in waiting])
    waited_s = np.array([view.now_s - job.submit_s for job in waiting])
    once_s = left[:, None] / np.maximum(rates, LEAST_RATE)
    places = np.arange(1, len(waiting) + 1)
    cost = (places[:, None] * once_s[:, None, :]).reshape(len(waiting), -1) + waited_s[:, None]
    first: dict[int, tuple[int, CandidateJob]] = {}
    for job, chosen in zip(waiting, cheapest_assignment(cost), strict=True):
        worker, place = chosen % len(workers), chosen // len(workers)
        if worker not in first or place > first[worker][0]:
            first[worker] = place, job
    return {job.job_id: workers[worker] for worker, (_, job) in first.items()}
