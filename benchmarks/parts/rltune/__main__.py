"""`python -m benchmarks.parts.rltune`: train RLTune over FCFS on the first 60 % of Helios Venus.

Ten minutes on one core, with `OPENBLAS_NUM_THREADS=1`: the threads of the algebra wait by
spinning, and on a busy machine that takes eight times the CPU. It simulates as many jobs as a
network of `training.left_out`; an interrupted training keeps the epochs that it did. The weights,
with the options and rewards, go to `weights.json` beside this; `left_out.md` and `policies.md` say
how long the committed ones trained.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace

import numpy as np

from benchmarks.parts.rltune.network import BATCH_JOBS, WEIGHTS, jobs_per_epoch
from benchmarks.parts.rltune.ppo import Jobs, PpoOptions, train
from simulator.kernel.batches import EVALUATED, NODES
from simulator.kernel.work import build_work
from simulator.workload.source import read_columns

TRACE, SEED = "helios_venus", 0
SIMULATED_JOBS = 3_264_000
"""As many as a network of `training.left_out`."""


def budgeted(options: PpoOptions) -> PpoOptions:
    """Return the options with as many epochs as the budget has."""
    return replace(options, epochs=SIMULATED_JOBS // jobs_per_epoch(options.episodes))


def training_jobs() -> Jobs:
    """Return the jobs submitted before those that count, without ones that never fit."""
    work = build_work(read_columns(TRACE))
    work = work.part(work.gang <= int(NODES.sum()))
    first, last = work.submit_ms[0], work.submit_ms[-1]
    work = work.part(work.submit_ms < first + EVALUATED[0] * (last - first))
    return work.submit_ms / 1000.0, work.duration_ms / 1000.0, work.gang


def main() -> None:
    options, began = budgeted(PpoOptions()), time.process_time()
    random = np.random.default_rng(SEED)
    submit_s, run_s, gpus = training_jobs()

    def draw() -> Jobs:
        low = int(random.integers(0, len(submit_s) - BATCH_JOBS))
        part = slice(low, low + BATCH_JOBS)
        return submit_s[part], run_s[part], gpus[part]

    rewards = []
    for actor, reward in train(draw, len(NODES), options, random):
        rewards.append(round(reward, 4))
        sys.stderr.write(f"epoch {len(rewards)}: mean reward {reward:.3f}\n")
        cpu_s = round(time.process_time() - began, 1)
        settings = {"seed": SEED, "cpu_s": cpu_s, **asdict(options), "mean_rewards": rewards}
        weights = [round(float(weight), 6) for weight in actor]
        WEIGHTS.write_text(json.dumps({**settings, "actor": weights}) + "\n")


if __name__ == "__main__":
    main()
