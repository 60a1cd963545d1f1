"""The evolution strategy on a function with a known minimum."""

from __future__ import annotations

import numpy as np

from training.evolution import Evolution, EvolutionOptions, Floats

OPTIONS = EvolutionOptions(generations=60, pairs=16, step=0.1, rate=0.1, decay=0.0)


def distance(theta: Floats) -> float:
    return float(((theta - 1.0) ** 2).sum())


def test_generations_approach_the_minimum() -> None:
    evolution = Evolution(np.zeros(3), OPTIONS, np.random.default_rng(0))
    for _ in range(OPTIONS.generations):
        evolution.generation(distance)
    assert distance(evolution.theta) < 0.05


def test_one_seed_gives_one_run() -> None:
    runs = [Evolution(np.zeros(3), OPTIONS, np.random.default_rng(7)) for _ in range(2)]
    losses = [run.generation(distance) for run in runs]
    assert losses[0] == losses[1]
    assert runs[0].theta.tolist() == runs[1].theta.tolist()
