"""Trials of pool settings on the pool's own past: the live deciders simulate each candidate."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace

import numpy as np

from shared.contracts.pools import PoolConfigured
from shared.contracts.settings_version import version_of
from shared.contracts.updates import UpdatePool
from simulator.engine.run import simulate
from simulator.engine.scenario import Scenario
from simulator.metrics.measures import utilisation
from simulator.metrics.outcome import Floats, Ints, ScheduleOutcome

PRESENT = "present settings"
POLICY_SETTINGS = ("base_policy", "learned", "preemption", "preempt_margin")
"""The settings that candidates differ in."""


@dataclass(frozen=True, slots=True)
class TrialCandidate:
    """A display name and the pool settings that it changes."""

    name: str
    settings: dict[str, object]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Measures of a candidate over the counted jobs, in cluster seconds."""

    candidate: TrialCandidate
    jobs: int
    mean_wait_s: float
    """JCT less work: restarts and lost work count as waits."""
    p99_wait_s: float
    mean_jct_s: float
    utilisation: float
    preemptions: int
    submit_s: Floats = field(repr=False, compare=False)
    """Of each counted job [jobs]."""
    delay_s: Floats = field(repr=False, compare=False)
    """JCT less work of each counted job [jobs]."""
    tenant: Ints = field(repr=False, compare=False)
    """Number of the tenant of each counted job [jobs]."""

    def figures(self) -> dict[str, object]:
        """Return the fields of the candidate as a whole, as JSON values."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        del own["submit_s"], own["delay_s"], own["tenant"]
        return own | {"candidate": asdict(self.candidate)}


def policy_of(pool: PoolConfigured) -> dict[str, object]:
    """Return the settings of the pool that candidates differ in."""
    return {name: getattr(pool, name) for name in POLICY_SETTINGS}


def run_trial(scenario: Scenario, candidate: TrialCandidate) -> TrialResult:
    """Simulate the whole past under these settings; the warm-up is not counted."""
    pool = PoolConfigured.model_validate(scenario.pool.model_dump() | candidate.settings)
    return trial_of(candidate, scenario, simulate(replace(scenario, pool=pool)).outcome)


def trial_of(
    candidate: TrialCandidate, scenario: Scenario, outcome: ScheduleOutcome
) -> TrialResult:
    """Return the measures of an outcome over the jobs of the window that count."""
    counted = outcome.in_window & outcome.fits
    counted[sorted(scenario.load_only)] = False
    delay_s = (outcome.jct_s - outcome.duration_s)[counted]
    return TrialResult(
        candidate,
        len(delay_s),
        float(delay_s.mean()),
        float(np.quantile(delay_s, 0.99)),
        float(outcome.jct_s[counted].mean()),
        utilisation(outcome),
        int(np.maximum(outcome.starts - 1, 0).sum()),
        outcome.submit_s[counted],
        delay_s,
        outcome.tenant[counted],
    )


def update_command(pool: PoolConfigured, candidate: TrialCandidate, reason: str = "") -> UpdatePool:
    """Return the change that applies the candidate; it names no other settings.

    `reason` is recorded with it. It is refused if the pool was changed since its settings were
    read.
    """
    about: dict[str, object] = {"pool": pool.pool, "if_version": version_of(pool)}
    if reason:
        about["reason"] = reason
    return UpdatePool.model_validate(about | candidate.settings)
