"""`python -m training.rlscheduler`: train RLScheduler's network of 961 weights on lublin_256.

The publication trains it by PPO from nothing. Here it first imitates F1 (the rank of a job among
others of the log, by squared error), and then evolution takes steps by the mean bounded slowdown of
sequences of 256 jobs. As in the publication they come from the whole log, of which the evaluated
sequences are parts. The best weights by other such sequences are written to
`shared/schedulers/rlscheduler_weights.py`. Those that are there are of no generation: 60 of them
(`--generations 60`) brought none that is better.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shared.schedulers import job_network
from shared.schedulers.job_network import LAYERS, Floats, Limits, features
from simulator.batch_queue.jobs import BatchJob, log_file, read_jobs
from simulator.batch_queue.picks import by_network, f1, least, limits_of
from simulator.batch_queue.world import mean_bounded_slowdown
from simulator.kernel.adam import Adam
from training.evolution import Evolution, EvolutionOptions
from training.weight_files import report, write_weights

FILE = Path(__file__).parents[1] / "shared/schedulers/rlscheduler_weights.py"
EPISODE_JOBS = 256
FIT_STEPS, FIT_BATCH, FIT_RATE = 4_000, 256, 3e-3
LONGEST_WAIT_S = 2e5
HEAD = '''"""Weights of RLScheduler's network, by `python -m training.rlscheduler`; do not edit."""

LIMITS = ({request_s!r}, {gpus!r})
"""Longest requested run time of the log, s, and processors."""
WEIGHTS = """
'''


def imitate(jobs: Sequence[BatchJob], limits: Limits, random: np.random.Generator) -> Floats:
    """Return weights by which the scores of jobs are in the order of F1, nearly."""
    theta = np.concatenate(
        [
            part
            for inputs, outputs in LAYERS
            for part in (
                random.normal(size=inputs * outputs) * np.sqrt(2.0 / inputs),
                np.zeros(outputs),
            )
        ]
    )
    table = np.array(jobs)
    keys = np.array([f1(job)[0] for job in jobs])
    adam = Adam(FIT_RATE, np.zeros_like(theta), np.zeros_like(theta))
    for step in range(FIT_STEPS):
        rows = random.integers(len(jobs), size=FIT_BATCH)
        waits = LONGEST_WAIT_S * random.random(FIT_BATCH) ** 3
        own, target = table[rows], keys[rows]
        inputs = features(waits, own[:, 2], own[:, 3], random.random(FIT_BATCH) < 0.5, limits)
        ranks = target.argsort().argsort() / FIT_BATCH
        adam.rate = FIT_RATE * (1.0 - step / FIT_STEPS)
        theta = theta - adam.move(gradient(theta, inputs, 1.0 - ranks))
    return theta


def gradient(theta: Floats, rows: Floats, targets: Floats) -> Floats:
    """Return the gradient of half the mean squared error."""
    values, at, layers = [rows], 0, []
    for number, (inputs, outputs) in enumerate(LAYERS):
        matrix = theta[at : at + inputs * outputs].reshape(inputs, outputs)
        at += inputs * outputs
        ahead = values[-1] @ matrix + theta[at : at + outputs]
        at += outputs
        layers.append(matrix)
        values.append(ahead if number == len(LAYERS) - 1 else np.maximum(ahead, 0.0))
    back = (values[-1] - targets[:, None]) / len(rows)
    parts: list[Floats] = []
    for number in reversed(range(len(LAYERS))):
        parts += [back.sum(axis=0), (values[number].T @ back).ravel()]
        back = (back @ layers[number].T) * (values[number] > 0)
    return np.concatenate(parts[::-1])


def episodes(
    jobs: Sequence[BatchJob], first: int, last: int, count: int, random: np.random.Generator
) -> list[list[BatchJob]]:
    starts = random.integers(first, last - EPISODE_JOBS, size=count)
    return [list(jobs[start : start + EPISODE_JOBS]) for start in starts]


def train(generations: int, seed: int) -> tuple[Floats, Limits]:
    """Return the weights that validate best, and the limits of their features."""
    file = log_file()
    if file is None:
        raise SystemExit("lublin_256.swf: not found beside the traces (docs/workloads.md)")
    jobs, random = read_jobs(file), np.random.default_rng(seed)
    limits = limits_of(jobs)
    start = imitate(jobs, limits, random)
    validation = episodes(jobs, 0, len(jobs), 40, random)
    bases = [mean_bounded_slowdown(own, least(f1)) for own in validation]

    def ratio(theta: Floats, chosen: Sequence[list[BatchJob]], known: Sequence[float]) -> float:
        """Return the mean logarithm of the slowdown over F1's: no sequence dominates."""
        pick = by_network(theta, limits)
        pairs = zip(chosen, known, strict=True)
        return float(np.mean([np.log(mean_bounded_slowdown(o, pick) / k) for o, k in pairs]))

    best, best_ratio = start, ratio(start, validation, bases)
    report(f"imitation of F1: {np.exp(best_ratio):.3f} of its slowdown")
    options = EvolutionOptions(generations, pairs=12, step=0.02, rate=0.01, decay=0.0)
    evolution = Evolution(start, options, random)
    for number in range(generations):
        chosen = episodes(jobs, 0, len(jobs), 6, random)
        known = [mean_bounded_slowdown(own, least(f1)) for own in chosen]
        evolution.generation(lambda theta, c=chosen, k=known: ratio(theta, c, k))  # type: ignore[misc]
        if number % 5 == 4:
            now = ratio(evolution.theta, validation, bases)
            report(f"generation {number + 1}: {np.exp(now):.3f}")
            if now < best_ratio:
                best, best_ratio = evolution.theta, now
    return best, limits


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    weights, limits = train(options.generations, options.seed)
    assert len(weights) == job_network.size()
    head = HEAD.format(request_s=limits.request_s, gpus=limits.gpus)
    write_weights(FILE, head, weights)


if __name__ == "__main__":
    main(sys.argv[1:])
