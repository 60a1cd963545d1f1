"""The conformance tests of HadarE: copies on idle nodes, steps divided by rates, no forced fork."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.check import violations
from shared.schedulers.compose import propose
from shared.schedulers.systems.hadar import Hadar
from shared.schedulers.systems.hadar_e import HadarForked
from shared.schedulers.view import CandidateJob, ClusterView, Placement
from simulator.rounds.job import RoundsJob
from simulator.rounds.world import RoundsOptions, RoundsWorld
from tests.shared.schedulers.systems.forked_work import ForkedWork
from tests.shared.schedulers.views import job, nodes_of, on, rates, view

SPEEDS = {"v": 4.0, "p": 2.0, "k": 1.0}


def forkable(name: str, left: float = 100.0, copies: int = 3) -> CandidateJob:
    return job(name, 1, estimates=rates(SPEEDS, 1, left), min_gpus=1, max_gpus=copies)


def mixed(*jobs: CandidateJob) -> ClusterView:
    return replace(view(list(jobs), nodes_of(v=1, p=1, k=1)), mixes_types=True)


def placements(now: ClusterView) -> dict[str, Placement]:
    proposal = propose(HadarForked(), now, {})
    assert list(violations(now, proposal)) == []
    return proposal.placements


def test_a_job_alone_has_a_copy_on_each_node() -> None:
    assert placements(mixed(forkable("a"))) == {"a": (("n-v", 1), ("n-p", 1), ("n-k", 1))}


def test_a_node_is_idle_only_where_copies_are_fewer_than_nodes() -> None:
    own = placements(mixed(forkable("a", copies=2)))
    assert own == {"a": (("n-v", 1), ("n-p", 1))}


def test_with_a_job_for_each_node_none_is_forked() -> None:
    jobs = [forkable(name) for name in "abc"]
    own = placements(mixed(*jobs))
    assert sorted(own.values()) == [on("n-k"), on("n-p"), on("n-v")]
    assert own == propose(Hadar(), mixed(*jobs), {}).placements


def test_the_next_copy_goes_to_the_job_with_the_most_time_left() -> None:
    own = placements(mixed(forkable("long", 1000.0), forkable("short", 10.0)))
    copies = {name: len(placement) for name, placement in own.items()}
    assert copies == {"long": 2, "short": 1}


def test_a_job_that_is_not_elastic_is_not_forked() -> None:
    own = placements(mixed(job("a", 1, estimates=rates(SPEEDS, 1, 100.0))))
    assert own == {"a": on("n-v")}


def test_without_mixed_types_copies_are_of_one() -> None:
    now = replace(mixed(forkable("a")), mixes_types=False)
    assert placements(now) == {"a": on("n-v")}


def finished_s(scheduler: Hadar, count: int, merge_s: float = 0.0) -> float:
    """Return the time from the first round to the end of the last of so many jobs of 7,000 steps,
    on three nodes.
    """
    table = RateTable({(name, 1): rate for name, rate in SPEEDS.items()})
    jobs = [
        RoundsJob(
            f"job-{number}", 0.0, 1, ForkedWork(7000.0, table, 1, merge_s), min_gpus=1, max_gpus=3
        )
        for number in range(count)
    ]
    options = RoundsOptions(round_s=100.0, mixes_types=True)
    outcome = RoundsWorld(jobs, nodes_of(v=1, p=1, k=1), scheduler, options).run()
    assert outcome.refusals == []
    first_s = min(own.first_start_s for own in outcome.jobs if own.first_start_s is not None)
    return max(own.end_s for own in outcome.jobs if own.end_s is not None) - first_s


def test_copies_divide_the_steps_by_their_rates() -> None:
    """7,000 steps at 4 + 2 + 1 a second take 1,000 s, on the fastest type alone 1,750 s."""
    assert finished_s(HadarForked(), 1) == pytest.approx(1000.0)
    assert finished_s(Hadar(), 1) == pytest.approx(1750.0)


def test_averaging_the_weights_takes_its_time_in_each_round() -> None:
    assert finished_s(HadarForked(), 1, merge_s=10.0) > 1100.0
    assert finished_s(Hadar(), 1, merge_s=10.0) == pytest.approx(1750.0)


def test_the_tail_of_a_batch_ends_sooner_and_a_full_cluster_is_as_before() -> None:
    assert finished_s(HadarForked(), 4) < finished_s(Hadar(), 4)
