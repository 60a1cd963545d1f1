"""Optimus (Peng et al., EuroSys'18): GPUs one by one to the job that they shorten most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from shared.schedulers.hooks import Allotment, Allotments, Decides, Hooks, Memory, Need, Placements
from shared.schedulers.placing import emptiest_first
from shared.schedulers.view import CandidateJob, ClusterView


class Optimus(Hooks):
    """Each job gets its least number first, in order of submission; GPUs are of the first type.

    A job without rates or work left is taken to gain nothing by a second GPU.
    """

    name: ClassVar[str] = "optimus"
    source: ClassVar[str] = "Peng et al., EuroSys'18, in Pollux' evaluation"
    needs: ClassVar[tuple[Need, ...]] = ("rates", "work_left")
    decides: ClassVar[tuple[Decides, ...]] = ("gpus",)

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        gpu_type, free = next(iter(view.gpus_of_type.items()))
        counts: dict[str, int] = {}
        gains: dict[str, float] = {}
        for name in ranked:
            job = view.job_by_id[name]
            least = max(1, job.min_gpus)
            if least > free or not job.may_use(gpu_type):
                continue
            counts[name] = least
            free -= least
            gains[name] = gain_s(job, gpu_type, least) if job.max_gpus > least else 0.0
        while free > 0 and (best := _largest(gains)) is not None:
            job = view.job_by_id[best]
            counts[best] += 1
            free -= 1
            may_grow = counts[best] < job.max_gpus and free > 0
            gains[best] = gain_s(job, gpu_type, counts[best]) if may_grow else 0.0
        smallest = sorted(counts, key=lambda name: counts[name])
        return {name: Allotment(gpu_type, counts[name]) for name in smallest}

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return emptiest_first(view, allotments)


def gain_s(job: CandidateJob, gpu_type: str, gpus: int) -> float:
    """Return the seconds by which one more GPU shortens the rest of the job."""
    return left_s(job, gpu_type, gpus) - left_s(job, gpu_type, gpus + 1)


def left_s(job: CandidateJob, gpu_type: str, gpus: int) -> float:
    """Return the time of the rest on so many GPUs; 0 where it is unknown."""
    table, left = job.estimates.rates, job.estimates.work_left
    rate = table.consolidated_rate(gpu_type, gpus) if table is not None else None
    return left / rate if left is not None and rate else 0.0


def _largest(gains: dict[str, float]) -> str | None:
    value: Callable[[str], float] = gains.__getitem__
    best = max(gains, key=value, default=None)
    return best if best is not None and gains[best] > 0 else None
