"""A tenant that floods the pool with short jobs leaves another its part of the GPUs."""

from __future__ import annotations

import random
from itertools import accumulate

import numpy as np
import pytest

from shared.contracts.pools import LOG_SCORE_MARGIN
from simulator.kernel.run import Rules, simulate
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob

pytestmark = pytest.mark.slow

NODES, NODE_GPUS, HOURS = 4, 8, 24
GPUS = NODES * NODE_GPUS


def flooded(seed: int, gpus: int) -> list[WorkloadJob]:
    """One tenant's jobs of ten minutes for 1.5 times the pool, and another's of four hours."""
    draws = random.Random(seed)
    count = int(1.5 * GPUS * HOURS * 6)
    gaps = (draws.expovariate(count / (HOURS * 3600)) for _ in range(count))
    jobs = [(at, "flood", 600.0 * draws.uniform(0.8, 1.2), 1) for at in accumulate(gaps)]
    jobs += [(60.0 * n, "long", 14400.0 * draws.uniform(0.5, 1.5), gpus) for n in range(80)]
    return [
        WorkloadJob(
            f"k{n:05d}", who, f"u-{who}", who, round(at, 3), run_s, 1, float(size), None, 1, 1, None
        )
        for n, (at, who, run_s, size) in enumerate(sorted(jobs))
    ]


def long_share(jobs: list[WorkloadJob], floor: float) -> float:
    """Return the share of the GPU time in use that the flood does not get while it lasts."""
    rules = Rules(
        "gittins",
        preemption=True,
        preempt_margin=LOG_SCORE_MARGIN,
        checkpoint_s=1800.0,
        tenant_floor=floor,
    )
    sizes = np.full(NODES, NODE_GPUS, np.int64)
    outcome = simulate(build_work(columns_from(jobs)), sizes, rules).outcome
    is_short = np.array([job.tenant == "flood" for job in jobs])
    ended = is_short & (outcome.end_s <= HOURS * 3600 + outcome.submit_s[0])
    short = float((outcome.duration_s * outcome.gpus)[ended].sum())
    return 1.0 - short / float(outcome.held_by_hour[:HOURS].sum())


@pytest.mark.parametrize("gpus", [1, 4, 8])
def test_a_flooded_tenant_gets_its_part(gpus: int) -> None:
    """Its part is 0.5 of half the pool, and whole jobs fit into that."""
    jobs = flooded(gpus, gpus)
    before, after = long_share(jobs, 0.0), long_share(jobs, 0.5)
    assert before < 0.15, "those that began before the pool was full"
    assert after >= 0.9 * 0.25, "but for the time until its first jobs start"
