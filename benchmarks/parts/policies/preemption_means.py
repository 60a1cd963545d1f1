"""The mean over the costs of stops, of one trace, share and policy, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.parts.policies.preemption import Group
from benchmarks.parts.rounding import rounded
from simulator.metrics.bootstrap import gain
from simulator.metrics.policy_jobs import PolicyJobs


@dataclass(frozen=True, slots=True)
class MeanGain:
    """Waits under a policy with preemption over those of the best one without, less 1, over all
    costs.

    The interval is a paired block bootstrap of 95 %, None where one cannot be given.
    """

    trace: str
    fixed_share: float
    policy: str
    wait_vs_best_nonpreemptive: float
    ci_low: float | None
    ci_high: float | None

    @property
    def group(self) -> Group:
        return self.trace, self.fixed_share, self.policy

    def plain(self) -> dict[str, object]:
        return rounded(self, 4)


def mean_gain(group: Group, base: PolicyJobs, runs: Sequence[PolicyJobs]) -> MeanGain:
    """Return the mean over `runs`, one per cost, of the same jobs as those of `base`.

    The base stops no job, so it is the same under all costs, and the mean of the ratios is the
    ratio of the mean delays of each job.
    """
    delay_s = np.mean([run.delay_s for run in runs], axis=0)
    change = gain(base.delay_s, delay_s, base.unit)
    low, high = (None if end != end else end for end in (change.low, change.high))
    return MeanGain(*group, change.gain, low, high)
