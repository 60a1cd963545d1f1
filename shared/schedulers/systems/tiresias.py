"""Tiresias (Gu et al., NSDI'19): least attained service in two queues, gangs all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shared.schedulers.hooks import Allotments, Decides, Hooks, Memory, Placements, admit
from shared.schedulers.placing import emptiest_first
from shared.schedulers.view import ClusterView

LIMIT_GPU_S = 57_600.0
"""GPU-seconds after which a job is in the second queue: 16 h, tuned by Pollux' authors."""


class Tiresias(Hooks):
    """2D-LAS without promotion: a job that is passed over is stopped.

    A queue is in the order in which jobs came to it. No durations are needed.
    """

    name: ClassVar[str] = "tiresias"
    source: ClassVar[str] = "Gu et al., NSDI'19, with the queues of Pollux' evaluation"
    decides: ClassVar[tuple[Decides, ...]] = ("order",)

    def rank(self, view: ClusterView, memory: Memory) -> list[str]:
        demoted: list[str] = [name for name in memory.get("demoted", []) if name in view.job_by_id]
        in_order = sorted(view.jobs, key=lambda job: (job.submit_s, job.job_id))
        fresh = [job for job in in_order if job.job_id not in demoted]
        demoted += [job.job_id for job in fresh if job.held_gpu_s >= LIMIT_GPU_S]
        memory["demoted"] = demoted
        return [job.job_id for job in fresh if job.job_id not in demoted] + demoted

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return admit(view, ranked, {})

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        return emptiest_first(view, allotments)
