from __future__ import annotations

import numpy as np

from shared.schedulers.evolution import SharingProblem, evolve_states, mutated, repaired


def problem(jobs: int = 3, nodes: int = 4) -> SharingProblem:
    gpus = np.arange(nodes * 4 + 1)
    speedups = np.broadcast_to(np.sqrt(gpus), (jobs, nodes + 1, len(gpus))).copy()
    return SharingProblem(
        speedups,
        np.ones(jobs),
        np.full(jobs, 6),
        np.ones(jobs, np.int64),
        np.full(nodes, 4, np.int16),
        np.zeros((jobs, nodes), np.int16),
    )


def test_repaired_states_keep_all_bounds() -> None:
    own, rng = problem(5), np.random.default_rng(1)
    states = rng.integers(0, 5, (200, 5, 4)).astype(np.int16)
    for state in repaired(own, states, rng):
        assert (state.sum(axis=0) <= 4).all()
        assert (state.sum(axis=1) <= 6).all()
        is_spread = np.count_nonzero(state, axis=1) > 1
        assert ((state[is_spread] > 0).sum(axis=0) <= 1).all()


def test_a_mutation_grows_within_a_node() -> None:
    own, rng = problem(), np.random.default_rng(2)
    states = mutated(own, np.zeros((100, 3, 4), np.int16), rng)
    assert 0 < states.max() <= 4


def test_generations_lower_no_fitness_and_a_seed_repeats() -> None:
    own = problem()
    runs = [evolve_states(own, own.base[None], 30, 30, np.random.default_rng(3)) for _ in range(2)]
    (states, fitness), (again, _) = runs
    assert (states == again).all()
    assert fitness[0] == fitness.max() > own.fitness(own.base[None])[0]
    assert states[0].sum(axis=1).min() == 4, "a whole node each, at least"
