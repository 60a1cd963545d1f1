"""`python -m benchmarks.parts.rltune`: train RLTune over FCFS on the first 60 % of Helios Venus.

Minutes on one core. The weights, with the options and rewards, go to `weights.json` beside this.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

import numpy as np

from benchmarks.parts.rltune.network import WEIGHTS
from benchmarks.parts.rltune.ppo import Jobs, PpoOptions, train
from simulator.kernel.batches import EVALUATED, NODES
from simulator.kernel.work import build_work
from simulator.workload.source import read_columns

TRACE, BATCH_JOBS, SEED = "helios_venus", 256, 0


def training_jobs() -> Jobs:
    """Return the jobs submitted before those that count, without ones that never fit."""
    work = build_work(read_columns(TRACE))
    work = work.part(work.gang <= int(NODES.sum()))
    first, last = work.submit_ms[0], work.submit_ms[-1]
    work = work.part(work.submit_ms < first + EVALUATED[0] * (last - first))
    return work.submit_ms / 1000.0, work.duration_ms / 1000.0, work.gang


def main() -> None:
    options, began = PpoOptions(), time.process_time()
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
