"""Muri's groups (SIGCOMM'22, section 5), by hand and by properties."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from shared.performance.interleaving import GpuSharing, Stage, StageProfile
from shared.performance.rates import RateTable
from shared.schedulers.check import check
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.muri import Muri, MuriUnknown, merged
from shared.schedulers.view import CandidateJob, ClusterView, Estimates, TypedNode, gpus_of
from tests.shared.schedulers.views import job, nodes_of, on, view

SHARING = GpuSharing(4, (1.0, 1.1, 1.2, 1.2))
LOADS, COMPUTES = (8.0, 1.0, 1.0, 1.0), (1.0, 1.0, 8.0, 1.0)


def staged(
    name: str, seconds: tuple[float, ...] | None, gpus: int = 1, left: float = 100.0
) -> CandidateJob:
    profile = None
    if seconds is not None:
        profile = StageProfile(sum(seconds), tuple(Stage(own) for own in seconds))
    table = RateTable({("v", gpus): 1.0})
    return job(name, gpus, estimates=Estimates("oracle", left, table, stages=profile))


def shared_view(jobs: list[CandidateJob], gpus: int, sharing: GpuSharing = SHARING) -> ClusterView:
    return replace(view(jobs, nodes_of(v=gpus)), sharing=sharing)


def test_jobs_with_different_stages_share_a_gpu() -> None:
    jobs = [
        staged("a", LOADS),
        staged("b", LOADS, left=200.0),
        staged("c", COMPUTES, left=300.0),
        staged("d", COMPUTES, left=400.0),
    ]
    proposal = propose(Muri(), now := shared_view(jobs, 2), {})
    check(now, proposal)
    kinds = {frozenset(name in "ab" for name in group) for group in proposal.groups}
    assert kinds == {frozenset((True, False))}, "each group has one job of each kind"
    assert set(proposal.placements) == set("abcd")


def test_nothing_is_shared_while_gpus_are_free() -> None:
    jobs = [staged("a", LOADS), staged("b", COMPUTES)]
    assert propose(Muri(), shared_view(jobs, 2), {}).groups == ()
    assert propose(Muri(), shared_view(jobs, 1), {}).groups == (("a", "b"),)


def test_only_jobs_of_one_size_share() -> None:
    jobs = [staged("a", LOADS, 2), staged("b", COMPUTES, 1, 300.0)]
    proposal = propose(Muri(), shared_view(jobs, 2), {})
    assert (proposal.groups, set(proposal.placements)) == ((), {"a"})


def test_a_group_that_is_slower_than_its_jobs_in_turn_is_split() -> None:
    jobs = [staged("a", (0.0, 0.0, 9.0, 0.0)), staged("b", (0.0, 0.0, 9.0, 0.0), left=50.0)]
    proposal = propose(Muri(), shared_view(jobs, 1), {})
    assert (proposal.groups, set(proposal.placements)) == ((), {"b"})


def test_unknown_stages_are_shared_with_none() -> None:
    jobs = [staged("a", None), staged("b", COMPUTES, left=50.0), staged("c", LOADS)]
    assert propose(Muri(), shared_view(jobs, 1), {}).groups == (("b", "c"),)


def test_alone_it_is_the_shortest_remaining_service_first() -> None:
    jobs = [staged("a", LOADS), staged("b", COMPUTES, left=50.0)]
    proposal = propose(Muri(), shared_view(jobs, 1, GpuSharing()), {})
    assert set(proposal.placements) == {"b"}


def test_without_durations_the_least_attained_service_is_first() -> None:
    jobs = [
        replace(staged("a", LOADS, left=1.0), held_gpu_s=60.0, placement=on("n-v")),
        replace(staged("b", LOADS, left=9e9), held_gpu_s=30.0),
    ]
    proposal = propose(MuriUnknown(), shared_view(jobs, 1, GpuSharing()), {})
    assert set(proposal.placements) == {"b"}


def test_no_more_is_merged_than_the_capacity_needs() -> None:
    jobs = [staged(f"j{number}", LOADS if number % 2 else COMPUTES) for number in range(8)]
    for capacity in range(2, 9):
        groups = merged({1: jobs}, capacity, SHARING)
        assert len(groups) == capacity
        assert sorted(own.job_id for group in groups for own in group) == [
            own.job_id for own in jobs
        ]


@pytest.mark.parametrize("seed", range(12))
def test_groups_keep_the_rules_and_leave_no_gpu_that_a_job_fits(seed: int) -> None:
    rng = random.Random(seed)
    nodes = (TypedNode("n0", "v", 4), TypedNode("n1", "v", 4))
    memory: Memory = {}
    jobs: list[CandidateJob] = []
    for number in range(10):
        for index in range(rng.randrange(5)):
            seconds = tuple(rng.uniform(0.1, 5.0) for _ in range(4))
            own = staged(
                f"j{number:02d}-{index}", seconds, rng.choice((1, 1, 2, 4)), rng.uniform(1, 1e4)
            )
            jobs.append(replace(own, preemptible=rng.random() < 0.9))
        now = replace(view(jobs, nodes, number * 60.0, number), sharing=SHARING)
        proposal = propose(Muri(), now, memory)
        check(now, proposal)
        assert all(gpus_of(proposal.placements[g[0]]) <= 4 for g in proposal.groups)
        waiting = [own for own in jobs if own.job_id not in proposal.placements]
        alone = {group[0] for group in proposal.groups}
        grouped = {name for group in proposal.groups for name in group}
        held = sum(
            gpus_of(own)
            for name, own in proposal.placements.items()
            if name in alone or name not in grouped
        )
        is_one_size = {own.gpus for own in waiting} == {1}
        assert held == 8 or not is_one_size, "a GPU is free and a job of one GPU waits"
        jobs = [
            replace(
                own,
                placement=proposal.placements.get(own.job_id, ()),
                neighbours=proposal.neighbours.get(own.job_id, ()),
            )
            for own in jobs
        ]
        ended = {own.job_id for own in jobs if rng.random() < 0.2}
        jobs = [
            replace(own, neighbours=tuple(o for o in own.neighbours if o not in ended))
            for own in jobs
            if own.job_id not in ended
        ]
