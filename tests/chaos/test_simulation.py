"""Seeded stories of the deployed code in virtual time: nothing is lost, nothing happens twice."""

from __future__ import annotations

import pytest

from tests.chaos.processes import Faults
from tests.chaos.story import Plot, tell

pytestmark = pytest.mark.slow

JOBS = 25
CALM = Plot(seed=0, jobs=JOBS, faults=Faults(), kills=0, zombies=0, jumps=0, rivals=False, copies=1)
HARSH = Faults(dies=0.01, freezes=0.02, accident=0.15, rereads=0.05)


@pytest.fixture(scope="module")
def calm() -> str:
    """Hash of the ends of the jobs without any fault."""
    outcome = tell(CALM)
    assert (outcome.wrong, outcome.deaths, outcome.ignored) == ([], 0, 0)
    return outcome.state


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.parts) for seed in range(3, 8))]
)
def test_whatever_dies_or_comes_twice_every_job_ends_as_in_a_calm_world(
    seed: int, calm: str
) -> None:
    outcome = tell(Plot(seed, JOBS, faults=HARSH))
    assert outcome.wrong == []
    assert outcome.state == calm
    assert min(outcome.deaths, outcome.freezes, outcome.accidents, outcome.ignored) > 3


def test_a_seed_tells_the_same_story_again() -> None:
    assert tell(Plot(3, JOBS)) == tell(Plot(3, JOBS))
