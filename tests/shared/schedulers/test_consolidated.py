from __future__ import annotations

import random

import pytest

from shared.schedulers.consolidated import consolidated, first_fit
from shared.schedulers.hooks import Allotment
from shared.schedulers.view import CandidateJob, TypedNode
from tests.shared.schedulers.views import job, on, view

NODES = (TypedNode("n0", "v", 4), TypedNode("n1", "v", 4), TypedNode("n2", "v", 4))


def test_a_gang_is_within_a_node_or_on_whole_ones() -> None:
    assert first_fit({"n0": 1, "n1": 3}, 4, 2) == (("n1", 2),)
    assert first_fit({"n0": 3, "n1": 3}, 4, 4) == ()
    assert first_fit({"n0": 3, "n1": 4, "n2": 4}, 4, 8) == (("n1", 4), ("n2", 4))
    assert first_fit({"n0": 3, "n1": 4}, 4, 6) == (("n1", 4), ("n0", 2))
    assert first_fit({"n0": 1, "n1": 4}, 4, 6) == ()


def test_what_a_job_holds_it_keeps_unless_another_fits_nowhere() -> None:
    jobs = [job("a", 2, placement=on("n1", 2)), job("b", 2, placement=on("n2", 2)), job("c", 4)]
    allotments = {own.job_id: Allotment("v", own.gpus) for own in jobs}
    kept = consolidated(view(jobs, NODES), allotments)
    assert kept == {"a": on("n1", 2), "b": on("n2", 2), "c": on("n0", 4)}
    moved = consolidated(view(jobs, NODES[1:]), allotments)
    assert moved == {"c": on("n1", 4), "a": on("n2", 2), "b": on("n2", 2)}


@pytest.mark.parametrize("seed", range(30))
def test_gangs_of_powers_of_two_fit_if_their_gpus_are_free(seed: int) -> None:
    rng = random.Random(seed)
    jobs: list[CandidateJob] = []
    free = 12
    while free:
        gpus = rng.choice([size for size in (1, 2, 4, 8) if size <= free])
        free -= gpus
        jobs.append(job(f"j{len(jobs)}", gpus))
    allotments = {own.job_id: Allotment("v", own.gpus) for own in jobs}
    assert len(consolidated(view(jobs, NODES), allotments)) == len(jobs)
