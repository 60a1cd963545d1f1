"""Ways to run a pool, tried on its own past before one is switched on: never worse than its base.

The live deciders play every candidate; the first one, the learned policy with preemption by rank,
is taken unless the past shows regret. `berth bench policies` chooses by the same line of code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.priority.core.learned import looks_back
from shared.contracts.access import ConfigurePool, PoolConfigured
from simulator.engine.options import MARGIN
from simulator.engine.run import simulate
from simulator.engine.scenario import Scenario
from simulator.metrics.measures import utilisation

FAMILY = "berth"
REGRET = 0.05
"""By how much another candidate must have been better to be taken instead of the first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A name for people, and the settings of the pool that it changes."""

    name: str
    settings: dict[str, object]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a candidate did to the jobs that count, in cluster seconds."""

    candidate: Candidate
    jobs: int
    mean_wait_s: float
    """JCT less work: restarts and lost work are waits."""
    p99_wait_s: float
    mean_jct_s: float
    utilisation: float
    preemptions: int


def candidates(pool: PoolConfigured, family: str = FAMILY) -> list[Candidate]:
    """Best first, as other pools have it; the pool's base alone is the last."""
    ranked: dict[str, object] = {"preemption": "ranked", "preempt_margin": MARGIN}
    calm: dict[str, object] = {"preemption": "class", "preempt_margin": 0.0}
    blind: dict[str, object] = {"base_policy": "las", **ranked, "preempt_margin": 0.0}
    rank = {"base_policy": "gittins", **ranked} if looks_back(pool) else blind
    return [
        Candidate("learned, preemption by rank", {"learned": family, **ranked}),
        Candidate(f"{rank['base_policy']}, preemption by rank", {"learned": None, **rank}),
        Candidate("learned", {"learned": family, **calm}),
        Candidate(pool.base_policy, {"learned": None, **calm}),
    ]


def run_trial(scenario: Scenario, candidate: Candidate) -> TrialResult:
    """The whole past under these settings; the warm-up does not count."""
    pool = PoolConfigured.model_validate(scenario.pool.model_dump() | candidate.settings)
    outcome = simulate(replace(scenario, pool=pool)).outcome
    counted = outcome.in_window & outcome.fits
    delay_s = (outcome.jct_s - outcome.duration_s)[counted]
    return TrialResult(
        candidate,
        len(delay_s),
        float(delay_s.mean()),
        float(np.quantile(delay_s, 0.99)),
        float(outcome.jct_s[counted].mean()),
        utilisation(outcome),
        int(np.maximum(outcome.starts - 1, 0).sum()),
    )


def configure_command(pool: PoolConfigured, candidate: Candidate) -> ConfigurePool:
    """The command that sets the pool to it; what was not tried stays as it is."""
    now = pool.model_dump(mode="json", exclude={"partition"})
    return ConfigurePool.model_validate(now | candidate.settings)


def choose_candidate(waits: Sequence[float], regret: float = REGRET) -> int:
    """The first, unless a later one was better by `regret`: then the best."""
    best = int(np.argmin(waits))
    return best if waits[best] * (1 + regret) < waits[0] else 0
