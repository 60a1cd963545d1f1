"""A population of placements that improves by generations: the genetic search of Pollux.

A state [jobs, nodes] counts the GPUs of each job on each node; its fitness is the power mean of the
jobs' speedups. The publication keeps a second value, the use of GPUs, to size the cluster; the
cluster here has its size, so parents and survivors go by fitness alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
States: TypeAlias = npt.NDArray[np.int16]
Ints: TypeAlias = npt.NDArray[np.int64]

POPULATION = 100
FAIRNESS = -1.0
"""Exponent of the power mean: the more negative, the more the slowest job counts."""
LEAST_SPEEDUP = 1e-3
CROSSED = 0.9
RESET, ZEROED = 0.1, 0.1


@dataclass(frozen=True, slots=True)
class SharingProblem:
    """Speedups of jobs on a cluster of equal GPUs; jobs in the order in which GPUs are given out.

    `speedups` [jobs, nodes, GPUs] are relative to a fair part; `restart_factor` [jobs] is the part
    of its speedup that a job keeps which changes, so restarts.
    """

    speedups: Floats
    restart_factor: Floats
    most_gpus: Ints
    least_gpus: Ints
    node_gpus: States
    base: States

    def fitness(self, states: States) -> Floats:
        """Return the fitness of each state, [states]."""
        gpus = states.sum(axis=2, dtype=np.int16)
        nodes = np.count_nonzero(states, axis=2)
        speedups = self.speedups[np.arange(states.shape[1]), nodes, gpus]
        is_changed = (states != self.base).any(axis=2)
        kept = np.where(is_changed, speedups * self.restart_factor, speedups)
        mean: Floats = ((kept + LEAST_SPEEDUP) ** FAIRNESS).mean(axis=1) ** (1.0 / FAIRNESS)
        return mean


def evolve_states(
    problem: SharingProblem, states: States, generations: int, stall: int, rng: np.random.Generator
) -> tuple[States, Floats]:
    """Return the last population, best first, and its fitness.

    The search ends early after `stall` generations without a fitter state.
    """
    states, fitness = fittest(problem, repaired(problem, states, rng))
    without = 0
    for _ in range(generations):
        children = repaired(problem, mutated(problem, crossed(states, rng), rng), rng)
        best = fitness[0]
        states, fitness = fittest(problem, np.concatenate([states, children]))
        without = 0 if fitness[0] > best else without + 1
        if without >= stall:
            break
    return states, fitness


def fittest(problem: SharingProblem, states: States) -> tuple[States, Floats]:
    """Return the best states, best first; of those with one fitness the first.

    States that differ in the names of nodes alone have one fitness.
    """
    fitness = problem.fitness(states)
    distinct, first = np.unique(fitness, return_index=True)
    kept = first[::-1][:POPULATION]
    return states[kept], distinct[::-1][:POPULATION]


def crossed(states: States, rng: np.random.Generator) -> States:
    """Return children of parents that won against another each: first jobs of one, last of two.

    States are ordered by fitness, so the lower index wins.
    """
    one, two = rng.integers(len(states), size=(2, 2, POPULATION // 2)).min(axis=1)
    jobs = states.shape[1]
    point = rng.integers(jobs, size=len(one))
    point[rng.random(len(one)) >= CROSSED] = jobs
    is_first = (np.arange(jobs) < point[:, None])[:, :, None]
    first, second = states[one], states[two]
    return np.concatenate([np.where(is_first, first, second), np.where(is_first, second, first)])


def mutated(problem: SharingProblem, states: States, rng: np.random.Generator) -> States:
    """Return states of which jobs went back to what they hold, lost GPUs, or got more."""
    pairs = states.shape[:2]
    states = np.where((rng.random(pairs) < RESET)[:, :, None], problem.base, states)
    losing = np.nonzero(rng.random(pairs) < ZEROED)
    states[losing] *= rng.random((len(losing[0]), states.shape[2])) >= ZEROED
    has_room = problem.node_gpus > states.sum(axis=1, dtype=np.int16)
    anywhere = 1.0 / np.maximum(has_room.sum(axis=1), 1)[:, None, None]
    where_held = (states > 0) & has_room[:, None, :]
    there = 1.0 / np.maximum(where_held.sum(axis=2, keepdims=True), 1)
    chance = np.where(where_held, anywhere + there - anywhere * there, anywhere)
    drawn = rng.random(states.shape, dtype=np.float32)
    growing = np.nonzero((drawn < chance) & has_room[:, None, :])
    now, most = states[growing], problem.node_gpus[growing[2]]
    states[growing] = now + (rng.random(len(now)) * (most - now + 1)).astype(np.int16)
    return states


def repaired(problem: SharingProblem, states: States, rng: np.random.Generator) -> States:
    """Return states that a cluster can hold: one job over several nodes per node, at most the GPUs
    of each job, at most those of each node; jobs that come first keep theirs, and those with fewer
    than their least number get none."""
    is_held = states > 0
    is_spread = np.count_nonzero(is_held, axis=2) > 1
    spread = is_held & is_spread[:, :, None]
    later = spread & (np.cumsum(spread, axis=1, dtype=np.int8) > 1)
    states = np.where(later, np.int16(0), states)
    excess = np.nonzero(states.sum(axis=2, dtype=np.int16) > problem.most_gpus)
    if len(excess[0]):
        states[excess] = _cut(states[excess], problem.most_gpus[excess[1]], rng)
    filled = np.minimum(np.cumsum(states, axis=1, dtype=np.int16), problem.node_gpus)
    filled[:, 1:] -= filled[:, :-1].copy()
    if problem.least_gpus.max() > 1:
        filled[filled.sum(axis=2, dtype=np.int16) < problem.least_gpus] = 0
    return filled


def _cut(rows: States, most: Ints, rng: np.random.Generator) -> States:
    """Return the rows with at most so many GPUs, from nodes in an order drawn for each."""
    shuffled = np.argsort(rng.random(rows.shape), axis=1)
    taken = np.minimum(np.take_along_axis(rows, shuffled, axis=1).cumsum(axis=1), most[:, None])
    taken[:, 1:] -= taken[:, :-1].copy()
    cut: States = np.take_along_axis(taken, np.argsort(shuffled, axis=1), axis=1)
    return cut.astype(np.int16)
