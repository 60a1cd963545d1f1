"""RLScheduler against its publication: heuristics and its network on the log of the artifact.

The ten sequences of 1,024 jobs are those that the released evaluation draws for seed 1. WFP3 and
UNICEP are left out: the released code reads their waits from a time that is -1 for waiting jobs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shared.schedulers.systems.rlscheduler import LIMITS, weights
from simulator.batch_queue.jobs import log_file, read_jobs, released_starts, sequences
from simulator.batch_queue.picks import by_network, f1, fcfs, least, sjf
from simulator.batch_queue.world import Pick, mean_bounded_slowdown

ANCHOR = "RLScheduler (SC'20) README, lublin_256, mean bounded slowdown of 10 x 1,024 jobs, seed 1"
NETWORK, BACKFILLING = "network", "backfilling"
PUBLISHED = {
    "fcfs": (7273.8, 235.8),
    "sjf": (277.4, 73.3),
    "f1": (258.4, 75.1),
    NETWORK: (254.7, 58.6),
}
"""Mean bounded slowdown without and with EASY backfilling."""
SEQUENCES = 10


def batch_queue_runs() -> dict[str, list[float]] | None:
    """Return [published, ours] by policy; None where the log is not on this machine."""
    file = log_file()
    if file is None:
        return None
    jobs = read_jobs(file)
    parts = sequences(jobs, released_starts(len(jobs), SEQUENCES))
    runs = {}
    for name, pick in picks():
        for backfills, published in zip((False, True), PUBLISHED[name], strict=True):
            ours = np.mean([mean_bounded_slowdown(part, pick, backfills) for part in parts])
            runs[f"{name}, {BACKFILLING}" if backfills else name] = [published, float(ours)]
    return runs


def picks() -> Iterator[tuple[str, Pick]]:
    for name, key in (("fcfs", fcfs), ("sjf", sjf), ("f1", f1)):
        yield name, least(key)
    yield NETWORK, by_network(weights(), LIMITS)
