"""`python -m training.decima`: tune the weighted fair heuristic, and train Decima's network on it.

The publication trains by REINFORCE from nothing, for days. Here the network starts as the heuristic
and evolution takes steps by the mean logarithm of its mean completion time over the heuristic's, on
sequences that are new in each generation and the same for all its candidates. The weights with the
best ratio on sequences of their own are written to `simulator/stage_dags/network_weights.py`;
`--resume` goes on from those there. None of these sequences is one of `berth bench schedulers`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from simulator.stage_dags.graph import Floats
from simulator.stage_dags.jobs import Draws, StageJob, drawn_jobs
from simulator.stage_dags.network import by_network, first_weights, size
from simulator.stage_dags.network_weights import ALPHA, CONSERVES, GENERATIONS, KEPT, WEIGHTS
from simulator.stage_dags.picks import weighted_fair
from simulator.stage_dags.world import Executors, Pick, StageWorld
from training.evolution import Evolution, EvolutionOptions
from training.weight_files import report, write_weights

FILE = Path(__file__).parents[1] / "simulator/stage_dags/network_weights.py"
ALPHAS = tuple(number / 2 for number in range(-4, 5))
SWEPT_SEEDS, VALIDATION_SEEDS = range(1_000, 1_008), range(2_000, 2_010)
FIRST_TRAINING_SEED = 10_000
JOBS, SWEPT_JOBS = 30, 60
OPTIONS = EvolutionOptions(pairs=8, step=0.08, rate=0.03, decay=0.0)
SEQUENCES, VALIDATED_EVERY = 2, 4
HEAD = '''"""Weights of Decima's network, by `python -m training.decima`; do not edit."""

ALPHA, CONSERVES = {alpha!r}, {conserves!r}
"""The weighted fair heuristic with the least mean completion time of the sequences of the sweep."""
KEPT, GENERATIONS = {kept}, {generations}
"""The generation of these weights, 0: before the first, and those that were trained."""
WEIGHTS = """
'''


def mean_jct_s(jobs: Sequence[StageJob], pick: Pick) -> float:
    return StageWorld(jobs, pick, Executors()).run().mean_jct_s()


def tuned() -> tuple[float, bool]:
    """Return the power, and whether executors exceed shares, with the least completion times."""
    parts = [drawn_jobs(Draws(seed, SWEPT_JOBS)) for seed in SWEPT_SEEDS]
    kinds = [(alpha, conserves) for alpha in ALPHAS for conserves in (False, True)]
    means = {
        kind: float(np.mean([mean_jct_s(jobs, weighted_fair(*kind)) for jobs in parts]))
        for kind in kinds
    }
    best = min(means, key=lambda kind: means[kind])
    report(f"weighted fair: {means[best]:.2f} s with alpha {best[0]}, conserves {best[1]}")
    return best


class Ratios:
    """Completion times of sequences relative to those of the heuristic."""

    def __init__(self, seeds: Sequence[int], alpha: float, conserves: bool) -> None:
        self._parts = [drawn_jobs(Draws(seed, JOBS)) for seed in seeds]
        self._alpha = alpha
        self._bases_s = [mean_jct_s(jobs, weighted_fair(alpha, conserves)) for jobs in self._parts]

    def loss(self, theta: Floats) -> float:
        """Return the mean logarithm, so that no sequence dominates."""
        pick = by_network(theta, self._alpha)
        pairs = zip(self._parts, self._bases_s, strict=True)
        return float(np.mean([np.log(mean_jct_s(jobs, pick) / base) for jobs, base in pairs]))


def train(
    start: Floats, alpha: float, conserves: bool, generations: int, seed: int
) -> tuple[Floats, int]:
    """Return the weights that validate best, and their generation; 0: no better one came."""
    validation = Ratios(VALIDATION_SEEDS, alpha, conserves)
    best, kept, least = start, 0, validation.loss(start)
    report(f"before: {np.exp(least):.4f} of the heuristic's completion time")
    random = np.random.default_rng(seed)
    evolution = Evolution(start, OPTIONS, random)
    for number in range(1, generations + 1):
        seeds = FIRST_TRAINING_SEED + random.integers(2**30, size=SEQUENCES)
        mean = evolution.generation(Ratios(seeds.tolist(), alpha, conserves).loss)
        report(f"generation {number}: {np.exp(mean):.4f} of the candidates")
        if number % VALIDATED_EVERY and number < generations:
            continue
        now = validation.loss(evolution.theta)
        report(f"generation {number}: {np.exp(now):.4f}")
        if now < least:
            best, kept, least = evolution.theta, number, now
    return best, kept


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args(words)
    if options.resume:
        alpha, conserves, before, kept = ALPHA, CONSERVES, GENERATIONS, KEPT
        start = np.array([float(word) for word in WEIGHTS.split()])
    else:
        (alpha, conserves), before, kept = tuned(), 0, 0
        start = first_weights(np.random.default_rng(options.seed))
    assert len(start) == size()
    weights, own = train(start, alpha, conserves, options.generations, options.seed)
    head = HEAD.format(
        alpha=alpha,
        conserves=conserves,
        kept=before + own if own else kept,
        generations=before + options.generations,
    )
    write_weights(FILE, head, weights)


if __name__ == "__main__":
    main(sys.argv[1:])
