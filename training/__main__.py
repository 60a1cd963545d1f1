"""`python -m training`: train the learned priority on the compiled kernel, export the best seed.

Every seed sees the same windows of real traces (the first 45 % of their time), is validated on what
comes next (45 % to 60 %) and never sees the rest. The seed that validates best is exported; all of
them are in the manifest, with what each gained over the untrained network, so the worst is known.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from simulator.engine.models import FOLDER
from simulator.engine.options import MARGIN
from simulator.kernel.run import Rules
from simulator.kernel.weights import Floats, untrained
from training.evolution import Evolution, Options
from training.export import export
from training.windows import (
    FLOOR_S,
    SOURCES,
    TRAIN,
    VALIDATION,
    Window,
    training_windows,
    validation_windows,
)

SEEDS = Path(__file__).parent / "seeds"
HIDDEN = 8
LOADS = (0.85, 0.95, 1.05)
VALIDATED_AT = 0.9
WINDOWS_PER_GENERATION = 6
VALIDATED_EVERY = 4
MOST = 3.0
"""A candidate that ruins a window is as bad as one that triples its waits: no window rules all."""


@dataclass(frozen=True, slots=True)
class Trained:
    """One seed's best weights by validation; `ratios` are of delays to those of the base."""

    seed: int
    theta: Floats
    ratio: float
    ratios: dict[str, float]
    generation: int
    cpu_s: float


def rules_of(theta: Floats) -> Rules:
    return Rules("learned", preemption=True, preempt_margin=MARGIN, large_at_start=0.0, theta=theta)


class Judge:
    """Delays of candidates beside those of the untrained network, window by window."""

    def __init__(self, windows: list[Window]) -> None:
        self.windows = windows
        base = rules_of(untrained(0, 0))
        self._base_s = [window.delay_s(base) + FLOOR_S for window in windows]

    def ratio(self, at: int, theta: Floats) -> float:
        delay_s = self.windows[at].delay_s(rules_of(theta)) + FLOOR_S
        return min(MOST, delay_s / self._base_s[at])

    def mean_ratio(self, drawn: Iterable[int], theta: Floats) -> float:
        return float(np.mean([self.ratio(at, theta) for at in drawn]))

    def ratios(self, theta: Floats) -> dict[str, float]:
        return {each.name: self.ratio(at, theta) for at, each in enumerate(self.windows)}


def train(seed: int, options: Options) -> Trained:
    """One run from one seed; progress goes to stderr."""
    began = time.process_time()
    training, validation = Judge(training_windows(LOADS)), Judge(validation_windows(VALIDATED_AT))
    random = np.random.default_rng(seed)
    evolution = Evolution(untrained(HIDDEN, seed), options, random)
    best = Trained(seed, evolution.theta, 1.0, validation.ratios(evolution.theta), 0, 0.0)
    for number in range(1, options.generations + 1):
        drawn = random.choice(len(training.windows), WINDOWS_PER_GENERATION, replace=False)
        loss = evolution.generation(partial(training.mean_ratio, drawn))
        line = f"seed {seed} generation {number}: {loss:.3f}"
        if number % VALIDATED_EVERY == 0:
            ratios = validation.ratios(evolution.theta)
            ratio = float(np.exp(np.mean(np.log(list(ratios.values())))))
            line += f", validated {ratio:.3f}"
            if ratio < best.ratio:
                best = Trained(seed, evolution.theta.copy(), ratio, ratios, number, 0.0)
        sys.stderr.write(line + "\n")
    return replace(best, cpu_s=time.process_time() - began)


def about(runs: list[Trained], options: Options) -> dict[str, object]:
    """What the manifest says of the training."""
    return {
        "role": "priority of waiting and running jobs, over any base policy",
        "base": "-(ln gittins_s + ln left_s) / 2 - ln gpus, of the tenant's history",
        "training": {
            "method": "evolution strategy on simulator.kernel, antithetic, Adam",
            "options": asdict(options),
            "hidden": HIDDEN,
            "traces": [name if part is None else f"{name}/{part}" for name, part in SOURCES],
            "share_of_time": TRAIN,
            "loads": LOADS,
            "cpu_hours": round(sum(run.cpu_s for run in runs) / 3600, 2),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--name", default="berth-preempt")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--generations", type=int, default=Options().generations)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    options = Options(generations=given.generations)
    with ProcessPoolExecutor(given.processes) as pool:
        runs = list(pool.map(train, range(given.seeds), [options] * given.seeds))
    best = min(runs, key=lambda run: run.ratio)
    path = export(given.out, given.name, best.theta, about(runs, options))
    every = {f"{run.seed}": run.theta.tolist() for run in runs}
    sys.stdout.write(f"{path}: seed {best.seed}, {best.ratio:.3f} of the base's delay\n")
    for seed in every:
        export(SEEDS, f"{given.name}-{seed}", np.array(every[seed]), {"seed": seed})


if __name__ == "__main__":
    main()
