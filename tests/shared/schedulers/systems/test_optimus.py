from __future__ import annotations

import pytest

from shared.performance.rates import RateTable
from shared.schedulers.compose import propose
from shared.schedulers.systems.optimus import Optimus, gain_s
from shared.schedulers.view import CandidateJob, Estimates, gpus_of
from tests.shared.schedulers.views import job, nodes_of, view


def scaling(name: str, left: float, power: float, most: int = 8) -> CandidateJob:
    table = RateTable({("v", gpus): gpus**power for gpus in range(1, most + 1)})
    return job(name, min_gpus=1, max_gpus=most, estimates=Estimates("oracle", left, table))


def test_the_next_gpu_goes_to_the_largest_gain() -> None:
    long, short = scaling("long", 1000.0, 0.9), scaling("short", 10.0, 0.9)
    placements = propose(Optimus(), view([long, short], nodes_of(v=6)), {}).placements
    assert {name: gpus_of(own) for name, own in placements.items()} == {"long": 5, "short": 1}
    assert gain_s(long, "v", 1) == pytest.approx(1000.0 - 1000.0 / 2**0.9)


def test_gpus_that_help_no_job_stay_free() -> None:
    now = view([scaling("flat", 100.0, 0.0), job("unknown", max_gpus=4)], nodes_of(v=6))
    placements = propose(Optimus(), now, {}).placements
    assert {name: gpus_of(own) for name, own in placements.items()} == {"flat": 1, "unknown": 1}
