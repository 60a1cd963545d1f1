from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shared.performance.goodput import BatchLimits, GoodputModel, GradientNoise, StepTimes
from shared.schedulers.compose import propose
from shared.schedulers.hooks import Memory
from shared.schedulers.systems.pollux import Pollux, adapted, problem_of, table
from shared.schedulers.view import CandidateJob, Estimates, TypedNode, gpus_of
from tests.shared.schedulers.views import job, on, view

NODES = tuple(TypedNode(f"n{number}", "t4", 4) for number in range(4))


def training(name: str, sync_s: float, most: int = 16, **fields: Any) -> CandidateJob:
    steps = StepTimes(0.05, 0.01, sync_s, 0.0, sync_s / 4, 0.0, 1.0)
    limits = BatchLimits(64, 4096, 8, 256)
    model = GoodputModel(steps, GradientNoise(1.0, 20.0), limits)
    return job(
        name, min_gpus=1, max_gpus=most, estimates=Estimates("measured", goodput=model), **fields
    )


def test_gpus_go_to_the_training_that_scales() -> None:
    now = view([training("fast", 0.001), training("slow", 5.0)], NODES, now_s=600.0)
    gpus = {name: gpus_of(own) for name, own in propose(Pollux(), now, {}).placements.items()}
    assert gpus["fast"] > gpus["slow"] >= 1


def test_one_distributed_job_at_most_is_on_a_node() -> None:
    jobs = [training(f"j{number}", 0.01) for number in range(5)]
    placements = propose(Pollux(), view(jobs, NODES, now_s=600.0), {}).placements
    spread = [dict(own) for own in placements.values() if len(own) > 1]
    nodes = [node for own in spread for node in own]
    assert len(nodes) == len(set(nodes))


def test_a_young_job_does_not_move_and_keeps_its_gpus() -> None:
    held = on("n2", 4)
    young = training("young", 0.01, most=4, submit_s=590.0, placement=held, restarts=3)
    assert propose(Pollux(), view([young], NODES, now_s=600.0), {}).placements == {"young": held}


def test_without_a_model_a_job_gets_one_gpu_until_it_has_run() -> None:
    now = view([job(name, min_gpus=1, max_gpus=1) for name in "abc"], NODES, now_s=60.0)
    placements = propose(Pollux(), now, {}).placements
    assert sorted(gpus_of(own) for own in placements.values()) == [1, 1, 1]


def test_the_population_follows_its_jobs_and_nodes() -> None:
    memory: Memory = {"jobs": ["a", "b"], "nodes": ["n0", "n9"], "states": [[[1, 9], [2, 9]]]}
    jobs = [training("b", 1.0), training("c", 1.0)]
    problem = problem_of(view(jobs, NODES), jobs, NODES)
    assert adapted(memory, jobs, NODES, problem.base).tolist() == [[[2, 0, 0, 0], [0, 0, 0, 0]]]


def test_a_speedup_of_one_is_a_fair_number_of_gpus() -> None:
    model = training("a", 0.1).estimates.goodput
    assert model is not None
    speedups = table(model, 4, 16, 2, 4)
    assert speedups[1, 2] == pytest.approx(1.0)
    assert np.all(speedups[1, 5:] == 0.0), "a node has four GPUs"
    assert speedups[0, 0] == 0.0
