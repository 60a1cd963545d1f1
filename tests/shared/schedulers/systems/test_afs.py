"""AFS' rule against all ways to share, for two jobs that end and give their GPUs to the other."""

from __future__ import annotations

import random

import pytest

from shared.schedulers.compose import propose
from shared.schedulers.systems.afs import Afs, ScalingJob, share, winner
from shared.schedulers.view import gpus_of
from tests.shared.schedulers.systems.test_optimus import scaling
from tests.shared.schedulers.views import job, nodes_of, view


def total_s(shorter: ScalingJob, longer: ScalingJob, to_shorter: bool) -> float:
    """Return the sum of completion times; the longer one has the GPU at the latest when the other
    ends."""
    if not to_shorter:
        return shorter.left / shorter.rate + longer.left / longer.next_rate
    end_s = shorter.left / shorter.next_rate
    return 2 * end_s + (longer.left - longer.rate * end_s) / longer.next_rate


@pytest.mark.parametrize("seed", range(60))
def test_the_winner_is_that_of_all_ways(seed: int) -> None:
    rng = random.Random(seed)
    jobs = []
    for name in "ab":
        rates, step = [0.0], 1.0
        for _ in range(8):
            rates.append(rates[-1] + step)
            step *= rng.uniform(0.3, 1.0)
        own = ScalingJob(name, rng.uniform(1.0, 10.0), rates)
        own.gpus = rng.randrange(1, 4)
        jobs.append(own)
    one, other = jobs
    if winner(one, other) is not winner(other, one):
        pytest.fail("the order of arguments decides")
    shorter, longer = sorted(jobs, key=lambda own: own.length_s)
    if longer.left / longer.next_rate < shorter.left / shorter.rate:
        return  # the rule takes the order of ends for fixed
    totals = [total_s(shorter, longer, to_shorter) for to_shorter in (True, False)]
    chosen = winner(one, other)
    assert totals[chosen is longer] == pytest.approx(min(totals))


def test_a_job_that_scales_gets_more_and_each_has_one() -> None:
    now = view([scaling("flat", 100.0, 0.1), scaling("steep", 100.0, 0.95)], nodes_of(v=8))
    placements = propose(Afs(), now, {}).placements
    gpus = {name: gpus_of(own) for name, own in placements.items()}
    assert gpus["steep"] > gpus["flat"] >= 1
    assert sum(gpus.values()) == 8


def test_a_gang_grows_from_its_least_number() -> None:
    table = [0.0, 0.0, 0.0, 3.0, 3.5, 4.0]
    assert share([ScalingJob("a", 10.0, table, least=3)], 2) == {"a": 0}
    assert share([ScalingJob("a", 10.0, table, least=3)], 4) == {"a": 4}


def test_jobs_of_which_nothing_is_known_get_their_least() -> None:
    now = view([job("unknown", 2, max_gpus=4), scaling("known", 100.0, 0.9)], nodes_of(v=6))
    placements = propose(Afs(), now, {}).placements
    assert {name: gpus_of(own) for name, own in placements.items()} == {"unknown": 2, "known": 4}
