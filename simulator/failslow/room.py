"""Ways to find room for a gang that leaves a slow node of a full pool, in GPU time.

Each node runs one worker of the gang or one small job, a queue takes each node that becomes free,
and the gang has lost as much as its migration costs. It may wait behind the queue, which here has
no end: then it stays. Or it takes the next node that becomes free before the queue, whose next job
gets the slow one. Or it swaps at once with a small job: that job stops too, does work again since
its last checkpoint, and goes on on the slow node. A job on the slow node loses the time of its own
GPUs alone, as long as the fault lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from random import Random
from typing import Literal

from services.failslow.core.mitigation.policy import lost_share
from simulator.failslow.faults import DETECTED_AFTER, ITERATION_S, DrawnFault, faults_of

Way = Literal["stays", "next free node", "swap"]
GANG_NODES = 4
MIGRATION_S = 120.0
CHECKPOINT_S = 600.0
"""Between two checkpoints of a small job; half of it is done again on average."""
RUN_SIGMA = 1.5
"""Of the lognormal run times of small jobs."""
POOL_NODES = (16, 64, 256)
MEDIAN_RUN_S = (600.0, 3600.0, 28_800.0)
SEEDS = range(1000, 1040)


@dataclass(frozen=True, slots=True)
class FullPool:
    """`nodes` with the gang's; the small jobs have run times of this median."""

    nodes: int
    median_run_s: float

    def rests_s(self, random: Random) -> list[float]:
        """Return how long the small jobs run still, at one moment of a pool that is always full.

        A job that is met at a moment is one of length in proportion, and met anywhere in it: the
        lognormal of such jobs has the median times exp(sigma^2).
        """
        middle = log(self.median_run_s) + RUN_SIGMA**2
        return [
            random.random() * random.lognormvariate(middle, RUN_SIGMA)
            for _ in range(self.nodes - GANG_NODES)
        ]


def lost_nodes_s(fault: DrawnFault, way: Way, rests_s: list[float]) -> float:
    """Return the time that a fault and the way out of it cost, in seconds of a node."""
    share = lost_share(fault.slowdown)
    due_s = min(fault.duration_s, DETECTED_AFTER * ITERATION_S + MIGRATION_S / share)
    moves_s = due_s + (min(rests_s) if way == "next free node" else 0.0)
    if way == "stays" or moves_s >= fault.duration_s:
        return GANG_NODES * share * fault.duration_s
    lost_s = GANG_NODES * (share * moves_s + MIGRATION_S)
    if way == "swap":
        lost_s += MIGRATION_S + CHECKPOINT_S / 2
    return lost_s + share * max(0.0, fault.duration_s - moves_s - MIGRATION_S)


def removed(pool: FullPool, way: Way, seeds: range = SEEDS) -> float:
    """Return the part of the lost time that a way saves beside staying."""
    lost_s = stayed_s = 0.0
    for seed in seeds:
        random = Random(f"room {seed}")
        for fault in faults_of("long", seed):
            rests_s = pool.rests_s(random)
            lost_s += lost_nodes_s(fault, way, rests_s)
            stayed_s += lost_nodes_s(fault, "stays", rests_s)
    return 1 - lost_s / stayed_s


def room_rows() -> list[dict[str, float]]:
    """Return what both ways save, by the size of the pool and the run times of its small jobs."""
    return [
        {
            "nodes": nodes,
            "median_run_s": median_s,
            "next_free_node": round(removed(FullPool(nodes, median_s), "next free node"), 3),
            "swap": round(removed(FullPool(nodes, median_s), "swap"), 3),
        }
        for nodes in POOL_NODES
        for median_s in MEDIAN_RUN_S
    ]
