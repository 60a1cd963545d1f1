"""`python -m training.left_out [FOLD ...]`: train networks on all traces but those of one cluster.

Every method begins with an untrained network and simulates equally many jobs, bases included. A
network's best state is chosen by validation on later time of the traces that trained it. Each
network is written to `left_out.json` when it is done; `berth bench left_out` evaluates them on the
traces that were left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from simulator.kernel.weights import Floats, untrained
from simulator.metrics.outcome import ScheduleOutcome
from training import folds
from training.evolution import Evolution, EvolutionOptions
from training.folds import BASE, FOLDS, Costs, Window, draw_costs, learned_rules, log_ratio
from training.ppo import Ppo, PpoOptions

RESULT = Path(__file__).with_name("left_out.json")
HIDDEN = 8
EVOLUTION = EvolutionOptions(generations=15, pairs=8)
EVOLUTION_WINDOWS = 4
PPO = PpoOptions(epochs=51, episodes=15)
PPO_REPEATS = 3
"""Episodes of a window at the same costs, which share the run of the base."""
VALIDATIONS = 3
"""Besides that of the untrained network."""
COSTS_SEED = 0
SEEDS = (0, 1, 2, 3, 4)

Drawn = tuple[Window, Costs, ScheduleOutcome]
"""A window at some costs, with the outcome under the base."""


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """The state of a network that validated best; ratios are of delays to those of the base."""

    fold: str
    method: str
    seed: int
    step: int
    """Generation or epoch of that state; 0: untrained."""
    validated: float
    """Geometric mean over the validation windows."""
    progress: list[float]
    """Geometric mean over the training windows of each generation or epoch."""
    simulated_jobs: int
    """In training, bases included, validation not."""
    cpu_s: float
    theta: list[float]


@dataclass(slots=True)
class Course:
    """The windows of a fold, and how many jobs were simulated on them."""

    training: Sequence[Window]
    validation: Sequence[Drawn]
    simulated_jobs: int = field(default=0)

    def draw(self, random: np.random.Generator, count: int) -> list[Drawn]:
        chosen = random.choice(len(self.training), count, replace=False)
        return [run_base(self.seen(at), draw_costs(random)) for at in chosen]

    def seen(self, at: int) -> Window:
        self.simulated_jobs += len(self.training[at])
        return self.training[at]

    def loss(self, drawn: Sequence[Drawn], theta: Floats) -> float:
        """Return the mean logarithm of the ratios of delays."""
        self.simulated_jobs += sum(len(window) for window, _, _ in drawn)
        return loss_of(drawn, theta)


def run_base(window: Window, costs: Costs) -> Drawn:
    return window, costs, window.run(BASE, costs).outcome


def loss_of(drawn: Sequence[Drawn], theta: Floats) -> float:
    rules = learned_rules(theta)
    ratios = [
        log_ratio(window.delay_s(window.run(rules, costs).outcome), window.delay_s(base))
        for window, costs, base in drawn
    ]
    return float(np.mean(ratios))


def open_course(fold: str) -> Course:
    """Return the windows of all traces but those of the fold."""
    training = folds.windows_without(fold, folds.TRAIN, folds.TRAINING_WINDOWS, folds.LOADS)
    later = folds.windows_without(
        fold, folds.VALIDATION, folds.VALIDATION_WINDOWS, (folds.VALIDATED_AT,)
    )
    random = np.random.default_rng(COSTS_SEED)
    return Course(training, [run_base(window, draw_costs(random)) for window in later])


Steps = Iterator[tuple[Floats, float]]
"""Weights after each generation or epoch, and its loss."""


def evolve(course: Course, random: np.random.Generator, seed: int) -> Steps:
    evolution = Evolution(untrained(HIDDEN, seed), EVOLUTION, random)
    for _ in range(EVOLUTION.generations):
        drawn = course.draw(random, EVOLUTION_WINDOWS)
        loss = evolution.generation(partial(course.loss, drawn))
        yield evolution.theta, loss


def follow_gradient(course: Course, random: np.random.Generator, seed: int) -> Steps:
    ppo = Ppo(untrained(HIDDEN, seed), PPO, random)
    for _ in range(PPO.epochs):
        drawn = course.draw(random, PPO.episodes // PPO_REPEATS) * PPO_REPEATS
        course.simulated_jobs += sum(len(window) for window, _, _ in drawn)
        loss = ppo.epoch(drawn)
        yield ppo.theta, loss


METHODS: dict[str, tuple[Callable[[Course, np.random.Generator, int], Steps], int]] = {
    "evolution": (evolve, EVOLUTION.generations),
    "ppo": (follow_gradient, PPO.epochs),
}
"""Each method, and the number of its steps."""


def train(course: Course, fold: str, method: str, seed: int) -> TrainedNetwork:
    """Train one network; progress goes to stderr."""
    began, course.simulated_jobs = time.process_time(), 0
    steps, count = METHODS[method]
    best = untrained(HIDDEN, seed)
    least, at, progress = loss_of(course.validation, best), 0, []
    for number, (theta, loss) in enumerate(
        steps(course, np.random.default_rng(seed), seed), start=1
    ):
        progress.append(round(float(np.exp(loss)), 4))
        line = f"{fold} {method} {seed}, step {number}: {progress[-1]:.3f}"
        if number % (count // VALIDATIONS) == 0:
            validated = loss_of(course.validation, theta)
            line += f", validated {np.exp(validated):.3f}"
            if validated < least:
                best, least, at = theta.copy(), validated, number
        sys.stderr.write(line + "\n")
    return TrainedNetwork(
        fold,
        method,
        seed,
        at,
        round(float(np.exp(least)), 4),
        progress,
        course.simulated_jobs,
        round(time.process_time() - began, 1),
        [round(float(weight), 6) for weight in best],
    )


def settings() -> dict[str, Any]:
    """Return how the networks are trained, as the file has it."""
    return {
        "folds": FOLDS,
        "traces": [name + (f"/{cluster}" if cluster else "") for _, name, cluster in folds.SOURCES],
        "train": folds.TRAIN,
        "validation": folds.VALIDATION,
        "loads": folds.LOADS,
        "jobs": [folds.WARM_UP, folds.JOBS],
        "windows": [folds.TRAINING_WINDOWS, folds.VALIDATION_WINDOWS],
        "costs": [folds.CHECKPOINT_S, folds.RESTART_S, folds.FIXED_SHARES],
        "hidden": HIDDEN,
        "evolution": {**asdict(EVOLUTION), "windows": EVOLUTION_WINDOWS},
        "ppo": {**asdict(PPO), "repeats": PPO_REPEATS},
    }


def add(trained: TrainedNetwork, path: Path = RESULT) -> None:
    """Write the network in the place of one of the same fold, method and seed."""
    known = json.loads(path.read_text())["networks"] if path.is_file() else []
    place = (trained.fold, trained.method, trained.seed)
    networks = [own for own in known if (own["fold"], own["method"], own["seed"]) != place]
    networks = sorted(
        [*networks, asdict(trained)], key=lambda own: (own["fold"], own["method"], own["seed"])
    )
    lines = ",\n".join(json.dumps(network) for network in networks)
    head = json.dumps(settings())
    path.write_text(f'{{"settings": {head},\n"networks": [\n{lines}\n]}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folds", nargs="*", choices=[*FOLDS, []], default=None)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="PPO takes the first")
    arguments = parser.parse_args()
    for fold in arguments.folds or FOLDS:
        course = open_course(fold)
        for method in arguments.methods:
            for seed in arguments.seeds if method == "evolution" else arguments.seeds[:1]:
                add(train(course, fold, method, seed))


if __name__ == "__main__":
    main()
