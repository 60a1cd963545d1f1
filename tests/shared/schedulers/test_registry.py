from __future__ import annotations

import random
from dataclasses import replace

import pytest

from shared.performance.interleaving import GpuSharing, Stage, StageProfile
from shared.performance.rates import RateTable
from shared.schedulers.check import check
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.registry import scheduler_classes, scheduler_of
from shared.schedulers.view import CandidateJob, ClusterView, Estimates, TypedNode
from tests.shared.schedulers.views import view

NAMES = {
    "a_srpt",
    "afs",
    "allox",
    "dally",
    "fcfs",
    "fcfs_strict",
    "gavel",
    "gavel_blind",
    "gavel_cost",
    "gavel_exchange",
    "gavel_finish_time",
    "gavel_makespan",
    "gavel_water_filling",
    "hadar",
    "hadar_e",
    "muri",
    "muri_unknown",
    "optimus",
    "pollux",
    "rlscheduler",
    "sia",
    "srsf",
    "synergy",
    "themis",
    "tiresias",
    "tiresias_gittins",
    "tiresias_las",
}


def test_schedulers_are_named_by_their_files() -> None:
    assert set(scheduler_classes()) == NAMES


def test_an_unknown_name_is_an_error_with_all_names() -> None:
    with pytest.raises(ValueError, match="scheduler: gavle, must be one of a_srpt, afs, allox"):
        scheduler_of("gavle")


def fuzzed(rng: random.Random, jobs: list[CandidateJob], number: int) -> ClusterView:
    """Return a view in which some jobs are new, and of some nothing is known."""
    nodes = [TypedNode(f"n{index}", "ab"[index % 2], 4) for index in range(4)]
    for index in range(rng.randrange(3)):
        gpus = rng.choice((1, 1, 2, 4))
        table = RateTable({(name, gpus): rng.uniform(0.1, 3.0) for name in "ab"})
        stages = tuple(Stage(rng.uniform(0.1, 2.0)) for _ in range(4))
        profile = StageProfile(sum(own.seconds for own in stages), stages)
        estimates = Estimates("oracle", rng.uniform(10, 1e5), table, stages=profile)
        is_known = rng.random() < 0.7
        jobs.append(
            CandidateJob(
                f"j{number:03d}-{index}",
                number * 360.0,
                gpus,
                gpus,
                gpus,
                estimates=estimates if is_known else Estimates(),
                preemptible=rng.random() < 0.8,
            )
        )
    now = view(jobs, tuple(nodes), number * 360.0, number)
    return replace(now, sharing=GpuSharing(4, (1.0, 1.2)))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_proposals_keep_the_rules_and_repeat(name: str) -> None:
    rng = random.Random(name)
    memories: list[Memory] = [{}, {}]
    jobs: list[CandidateJob] = []
    for number in range(1, 13):
        now = fuzzed(rng, jobs, number)
        proposals = [propose(scheduler_of(name), now, memory) for memory in memories]
        check(now, proposals[0])
        assert proposals[0] == proposals[1], "a proposal follows from view and memory"
        placements = proposals[0].placements
        jobs = [
            CandidateJob(
                job.job_id,
                job.submit_s,
                job.gpus,
                job.min_gpus,
                job.max_gpus,
                preemptible=job.preemptible,
                placement=placements.get(job.job_id, ()),
                neighbours=proposals[0].neighbours.get(job.job_id, ()),
                held_gpu_s=job.held_gpu_s
                + 360.0 * sum(g for _, g in placements.get(job.job_id, ())),
                estimates=job.estimates,
            )
            for job in now.jobs
            if rng.random() < 0.9
        ]
        left = {job.job_id for job in jobs}
        jobs = [
            replace(job, neighbours=tuple(own for own in job.neighbours if own in left))
            for job in jobs
        ]
    assert memories[0] == memories[1]
