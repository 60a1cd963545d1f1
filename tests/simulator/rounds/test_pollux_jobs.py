from __future__ import annotations

import pytest

from shared.schedulers.registry import scheduler_of
from simulator.rounds.artifacts import artifact_folder
from simulator.rounds.pollux_jobs import pollux_nodes, pollux_options, workload
from simulator.rounds.world import RoundsWorld

FOLDER = artifact_folder("pollux")

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="the inputs of Pollux' artifact are not here"
)


def test_a_scheduler_knows_what_its_evaluation_gives_it() -> None:
    assert FOLDER is not None
    jobs = {
        name: workload(FOLDER / "simulator", 6, name) for name in ("pollux", "optimus", "tiresias")
    }
    assert [len(own) for own in jobs.values()] == [160, 160, 160]
    first = {name: own[0].work.estimates() for name, own in jobs.items()}
    assert (first["pollux"].goodput, first["tiresias"].rates) == (None, None)
    rates, left = first["optimus"].rates, first["optimus"].work_left
    assert rates is not None and left is not None and left > 0
    assert 0 < (rates.consolidated_rate("t4", 1) or 0) < (rates.consolidated_rate("t4", 8) or 0)
    assert {job.max_gpus for job in jobs["tiresias"]} == {job.gpus for job in jobs["tiresias"]}


def test_a_training_that_ran_has_a_model_and_may_double() -> None:
    assert FOLDER is not None
    jobs = workload(FOLDER / "simulator", 6, "pollux")[:2]
    world = RoundsWorld(jobs, pollux_nodes(), scheduler_of("pollux"), pollux_options())
    assert jobs[0].work.most_gpus() == 1
    outcome = world.run()
    assert outcome.unfinished == 0
    assert max(own.restarts for own in outcome.jobs) > 0
    assert jobs[0].work.estimates().goodput is not None
    assert (jobs[0].work.most_gpus() or 0) > 1
