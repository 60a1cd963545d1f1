"""`python -m training [NAME ...]`: train priorities on the compiled kernel, export the best seed.

Every seed sees the same windows of real traces (the first 45 % of their time), is validated on what
comes next (45 % to 60 %) and never sees the rest. The seed that validates best is exported; all of
them are in the manifest, with what each gained over the base that it re-ranks, so the worst is
known. `first` comes first: the networks that ship begin with its seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from simulator.engine.models import FOLDER
from simulator.kernel.network import theta_of
from simulator.kernel.run import Rules
from simulator.kernel.weights import Floats, untrained
from training.evolution import Evolution, EvolutionOptions
from training.export import export
from training.variants import BASES, FIRST, SHIPPED, VARIANTS, Variant
from training.windows import (
    BATCH_SOURCE,
    FLOOR_S,
    SOURCES,
    TRAIN,
    VALIDATION,
    BatchWindow,
    TrainingWindow,
    make_batch_window,
    training_windows,
    validation_windows,
)

SEEDS = Path(__file__).parent / "seeds"
HIDDEN = 8
LOADS = (0.85, 0.95, 1.05)
VALIDATED_AT = 0.9
FROM_NOTHING = (EvolutionOptions(), 6, 4)
REFINED = (EvolutionOptions(generations=3, pairs=6, rate=0.04), 3, 1)
BORROWED = (EvolutionOptions(generations=0), 2, 1)
"""Evolution options, windows per generation, generations per validation. With preemption a
simulation takes ten times as long, and the network of `first` is good as it is.
"""
MAX_RATIO = 3.0
"""Bound of a ratio: a ruined window counts as tripled waits, so that no window dominates."""


@dataclass(frozen=True, slots=True)
class Trained:
    """One seed's best weights by validation; `ratios` are of delays to those of the base."""

    seed: int
    theta: Floats
    ratio: float
    ratios: dict[str, float]
    generation: int
    cpu_s: float


class Validator:
    """Delays of candidates relative to those of the base that they re-rank, window by window.

    Each window has a base of its own, which neither stops jobs nor has history if the variant
    has not; the first variant is compared with the untrained network instead.
    """

    def __init__(self, variant: Variant, windows: Sequence[TrainingWindow | BatchWindow]) -> None:
        self.variant = variant
        self.windows = windows
        self.bases = [BASES[at % len(BASES)] for at in range(len(windows))]
        self._base_s = [self.delay_s(at, self.base_rules(base)) for at, base in self.pairs()]

    def pairs(self) -> Iterable[tuple[int, str]]:
        return enumerate(self.bases)

    def base_rules(self, base: str) -> Rules:
        if self.variant == FIRST:
            return self.variant.rules(untrained(0, 0))
        return Rules(base)

    def delay_s(self, at: int, rules: Rules) -> float:
        return self.windows[at].delay_s(rules) + FLOOR_S

    def ratio(self, at: int, theta: Floats) -> float:
        delay_s = self.delay_s(at, self.variant.rules(theta, self.bases[at]))
        return min(MAX_RATIO, delay_s / self._base_s[at])

    def loss(self, drawn: Iterable[int], theta: Floats) -> float:
        """Return the mean of the logarithms: ten percent count alike in every window."""
        return float(np.mean([np.log(self.ratio(at, theta)) for at in drawn]))

    def ratios(self, theta: Floats) -> dict[str, float]:
        return {
            f"{self.windows[at].name} over {base}": self.ratio(at, theta)
            for at, base in self.pairs()
        }


def initial_weights(variant: Variant, seed: int) -> Floats:
    if variant == FIRST:
        return untrained(HIDDEN, seed)
    return theta_of((SEEDS / f"{FIRST.name}-{seed}.onnx").read_bytes())


def choose_plan(variant: Variant) -> tuple[EvolutionOptions, int, int]:
    if variant == FIRST:
        return FROM_NOTHING
    if not variant.preemption:
        return REFINED
    return BORROWED


def train(variant: Variant, seeds: Sequence[int]) -> list[Trained]:
    """Train from each seed; progress goes to stderr."""
    training = Validator(variant, [*training_windows(LOADS), *[make_batch_window(TRAIN)] * 4])
    validation = Validator(
        variant, [*validation_windows(VALIDATED_AT), make_batch_window(VALIDATION)]
    )
    return [train_seed(variant, seed, training, validation) for seed in seeds]


def train_seed(variant: Variant, seed: int, training: Validator, validation: Validator) -> Trained:
    began = time.process_time()
    options, windows, every = choose_plan(variant)
    random = np.random.default_rng(seed)
    evolution = Evolution(initial_weights(variant, seed), options, random)
    best = validate(seed, evolution.theta, 0, validation)
    for number in range(1, options.generations + 1):
        drawn = random.choice(len(training.windows), windows, replace=False)
        loss = evolution.generation(partial(training.loss, drawn))
        line = f"{variant.name} seed {seed} generation {number}: {np.exp(loss):.3f}"
        if number % every == 0:
            validated = validate(seed, evolution.theta, number, validation)
            line += f", validated {validated.ratio:.3f}"
            best = min(best, validated, key=lambda trained: trained.ratio)
        sys.stderr.write(line + "\n")
    return replace(best, cpu_s=time.process_time() - began)


def validate(seed: int, theta: Floats, generation: int, validation: Validator) -> Trained:
    ratios = validation.ratios(theta)
    ratio = float(np.exp(np.mean(np.log(list(ratios.values())))))
    return Trained(seed, theta.copy(), ratio, ratios, generation, 0.0)


def describe_training(variant: Variant, runs: list[Trained]) -> dict[str, object]:
    """Return the manifest's description of the training."""
    options, windows, _ = choose_plan(variant)
    return {
        "role": "priority of waiting and running jobs, over any base policy",
        "band": variant.band,
        "for": {"preemption": variant.preemption, "history": variant.history},
        "training": {
            "method": "evolution strategy on simulator.kernel, antithetic, Adam",
            "begins_with": "nothing learnt" if variant == FIRST else "training/seeds/first-SEED",
            "options": {**asdict(options), "windows_per_generation": windows},
            "hidden": HIDDEN,
            "bases": BASES,
            "traces": [name if part is None else f"{name}/{part}" for name, part in SOURCES],
            "batches": BATCH_SOURCE,
            "share_of_time": TRAIN,
            "loads": LOADS,
            "cpu_hours": round(sum(run.cpu_s for run in runs) / 3600, 3),
        },
        "validation": {
            "share_of_time": VALIDATION,
            "load": VALIDATED_AT,
            "delay_over_base": [
                {
                    "seed": run.seed,
                    "generation": run.generation,
                    "mean": round(run.ratio, 3),
                    "windows": {name: round(ratio, 3) for name, ratio in run.ratios.items()},
                }
                for run in sorted(runs, key=lambda run: run.ratio)
            ],
        },
    }


def write(variant: Variant, runs: list[Trained], folder: Path) -> None:
    """Write all seeds, and the best of them as the shipped network."""
    best = min(runs, key=lambda run: run.ratio)
    if variant != FIRST:
        export(folder, variant.name, best.theta, describe_training(variant, runs))
    for run in runs:
        export(SEEDS, f"{variant.name}-{run.seed}", run.theta, {"seed": run.seed})
    worst = max(run.ratio for run in runs)
    summary = f"{variant.name}: seed {best.seed}, {best.ratio:.3f} of the base's delay"
    sys.stdout.write(f"{summary}; the worst seed {worst:.3f}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    everything = [variant.name for variant in (FIRST, *SHIPPED)]
    parser.add_argument("names", nargs="*", choices=[*VARIANTS, []], default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(arguments.processes) as pool:
        for name in arguments.names or everything:
            parts = [[seed] for seed in range(arguments.seeds)]
            if arguments.processes == 1:
                parts = [list(range(arguments.seeds))]
            results = pool.map(train, [VARIANTS[name]] * len(parts), parts)
            write(VARIANTS[name], [run for runs in results for run in runs], arguments.out)


if __name__ == "__main__":
    main()
