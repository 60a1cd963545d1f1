"""Sia's published configurations and choices (SOSP'23), and rigid jobs."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Allotment
from shared.schedulers.systems.sia import Sia, configurations_of, part_kept
from shared.schedulers.view import CandidateJob, Estimates, TypedNode, gpus_of
from tests.shared.schedulers.views import job, on, view

NODES = (TypedNode("a0", "a", 8), TypedNode("b0", "b", 4), TypedNode("b1", "b", 4))
FAST, SLOW = 2.0, 1.0


def elastic(name: str, power: float = 0.9, **fields: Any) -> CandidateJob:
    table = RateTable(
        {
            (kind, gpus): speed * gpus**power
            for kind, speed in (("a", FAST), ("b", SLOW))
            for gpus in (1, 2, 4, 8)
        }
    )
    return job(name, min_gpus=1, max_gpus=8, estimates=Estimates("measured", rates=table), **fields)


def test_configurations_are_powers_of_two_and_whole_nodes() -> None:
    assert [tuple(own) for own in configurations_of(view([], NODES))] == [
        *(("a", gpus) for gpus in (1, 2, 4, 8)),
        *(("b", gpus) for gpus in (1, 2, 4, 8)),
    ]


def test_one_job_in_an_empty_cluster_gets_the_best_configuration() -> None:
    allotted = Sia().allot(view([elastic("one")], NODES), ["one"], {})
    assert allotted == {"one": Allotment("a", 8)}


class Served(Sia):
    """Lets no job wait beside another that has more than its least number."""

    name: ClassVar[str] = "served"
    without_gpus: ClassVar[float] = 2.0


class Indifferent(Sia):
    """Lets a job wait at a lower cost than it runs."""

    name: ClassVar[str] = "indifferent"
    without_gpus: ClassVar[float] = 0.2


@pytest.mark.parametrize(
    ("scheduler", "gpus"), [(Sia(), [2] * 4), (Served(), [1] * 8), (Indifferent(), [])]
)
def test_the_cost_of_waiting_decides_how_many_are_served(scheduler: Sia, gpus: list[int]) -> None:
    jobs = [elastic(f"j{number}", 0.9) for number in range(8)]
    now = view(jobs, (TypedNode("a0", "a", 8),))
    placements = propose(scheduler, now, {}).placements
    assert [gpus_of(own) for own in placements.values()] == gpus


def test_an_old_job_may_move_and_a_young_one_may_not() -> None:
    moved = {}
    for age_s in (60.0, 100_000.0):
        running = elastic("one", placement=on("b0", 4), restarts=1)
        now = view([running], (TypedNode("a0", "a", 4), *NODES[1:]), now_s=age_s)
        moved[age_s] = propose(Sia(), now, {}).placements["one"] != on("b0", 4)
    assert moved == {60.0: False, 100_000.0: True}
    assert (part_kept(10.0, 5), part_kept(60.0, 1)) == (1.0, 1 / 3)


def test_a_rigid_job_has_its_type_chosen() -> None:
    now = view([job("one", 2, gpu_types=("b",)), job("two", 2)], NODES)
    allotted = Sia().allot(now, ["one", "two"], {})
    assert allotted["one"] == Allotment("b", 2)
    assert allotted["two"].gpus == 2
