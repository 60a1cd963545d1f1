"""Trials of pool settings on the pool's own past before one is switched on: never worse than the
base.

The live deciders simulate every candidate; the first one, the learned policy with preemption by
rank, is taken unless the past shows regret. `berth bench policies` chooses by the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from services.priority.core.learned import uses_history
from shared.contracts.access import LOG_SCORE_MARGIN, ConfigurePool, PoolConfigured
from simulator.engine.run import simulate
from simulator.engine.scenario import Scenario
from simulator.metrics.measures import utilisation

FAMILY = "berth"
REGRET = 0.05
"""Gain by which another candidate must be better to be taken instead of the first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A display name and the pool settings that it changes."""

    name: str
    settings: dict[str, object]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Measures of a candidate over the counted jobs, in cluster seconds."""

    candidate: Candidate
    jobs: int
    mean_wait_s: float
    """JCT less work: restarts and lost work count as waits."""
    p99_wait_s: float
    mean_jct_s: float
    utilisation: float
    preemptions: int


def candidates(pool: PoolConfigured, family: str = FAMILY) -> list[Candidate]:
    """Return candidates, the best on other pools first; the pool's base alone is the last."""
    ranked: dict[str, object] = {"preemption": "ranked", "preempt_margin": LOG_SCORE_MARGIN}
    calm: dict[str, object] = {"preemption": "class", "preempt_margin": 0.0}
    blind: dict[str, object] = {"base_policy": "las", **ranked, "preempt_margin": 0.0}
    rank = {"base_policy": "gittins", **ranked} if uses_history(pool) else blind
    return [
        Candidate("learned, preemption by rank", {"learned": family, **ranked}),
        Candidate(f"{rank['base_policy']}, preemption by rank", {"learned": None, **rank}),
        Candidate("learned", {"learned": family, **calm}),
        Candidate(pool.base_policy, {"learned": None, **calm}),
    ]


def run_trial(scenario: Scenario, candidate: Candidate) -> TrialResult:
    """Simulate the whole past under these settings; the warm-up is not counted."""
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
    """Return the command that applies the candidate; other settings stay as they are."""
    now = pool.model_dump(mode="json", exclude={"partition"})
    return ConfigurePool.model_validate(now | candidate.settings)


def choose_candidate(waits: Sequence[float], regret: float = REGRET) -> int:
    """Return the first, unless a later one was better by `regret`: then the best."""
    best = int(np.argmin(waits))
    return best if waits[best] * (1 + regret) < waits[0] else 0
