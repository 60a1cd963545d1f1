"""Base policies: a key per job, lower first, over the arrays of a view.

Each is the array form of the scalar function of the same name in `keys`, which is authoritative; a
test compares them bit for bit. Logarithms are taken job by job: arrays round them otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from services.priority.core.history.distributions import Floats
from services.priority.core.policies import expected, keys
from services.priority.core.policies.runtimes import RunTimes
from services.priority.core.queue.queue_view import QueueView
from shared.contracts.pools import PoolConfigured, RuntimeSource


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """Inputs of a policy."""

    view: QueueView
    times: RunTimes
    share_factor: Callable[[], Floats]
    """Fair-share factor of each job's tenant, [n], in (0, 1]."""


Keys = Callable[[PolicyInputs], Floats]


@dataclass(frozen=True, slots=True)
class BasePolicy:
    """A base policy: a key per job, and how it becomes a score.

    The score is `-key`, so that a margin between two jobs has the key's unit; with `ratio` it is
    `-ln(key)`, so that a margin of 0.7 means half the key.
    """

    keys: Keys
    ratio: bool = False
    source: RuntimeSource | None = None
    """Source of its run times, whatever the pool's setting."""
    stable: bool = True
    """The key of a waiting job depends on that job alone and holds while it waits."""
    running: Literal["holds", "by_bin", "any"] = "holds"
    """The stable key of a job that runs holds; or, under run times of history, while the bin of its
    attained service is the same; or it may change at any moment."""

    def holds_while_running(self, source: RuntimeSource) -> bool:
        """Return whether the key of a running job holds until its attained bin changes."""
        return self.running == "holds" or (self.running == "by_bin" and source == "history")

    def score(self, key: float) -> float:
        """Return the score of one job."""
        return -math.log(max(key, LEAST_KEY)) if self.ratio else -key


LEAST_KEY = 1e-9


def scores_of(policy: BasePolicy, inputs: PolicyInputs) -> Floats:
    """Return a score per job, [n]; higher goes first."""
    job_keys = policy.keys(inputs)
    if not policy.ratio:
        return -job_keys
    return -np.array(list(map(math.log, np.maximum(job_keys, LEAST_KEY).tolist())), np.float64)


def fcfs(inputs: PolicyInputs) -> Floats:
    return inputs.view.submit_s


def smallest_first(inputs: PolicyInputs) -> Floats:
    return inputs.view.gpus


def sjf(inputs: PolicyInputs) -> Floats:
    return inputs.times.run_s()


def saf(inputs: PolicyInputs) -> Floats:
    return inputs.times.run_s() * inputs.view.gpus


def f1(inputs: PolicyInputs) -> Floats:
    submit = _log10(np.maximum(inputs.view.submit_s, 1.0))
    return _log10(np.maximum(inputs.times.run_s(), 1.0)) * inputs.view.gpus + 870.0 * submit


def wfp3(inputs: PolicyInputs) -> Floats:
    ratio = inputs.view.wait_s / np.maximum(inputs.times.run_s(), 1.0)
    return -(ratio * ratio * ratio) * inputs.view.gpus


def unicep(inputs: PolicyInputs) -> Floats:
    sizes, which = np.unique(np.maximum(inputs.view.gpus, 1.0), return_inverse=True)
    logs = np.array([math.log2(size) for size in sizes.tolist()], np.float64)[which]
    return -inputs.view.wait_s / (logs * inputs.times.run_s() + 1e-5)


def multifactor(inputs: PolicyInputs) -> Floats:
    view = inputs.view
    age = np.minimum(view.wait_s / keys.MAX_AGE_S, 1.0)
    size = 1.0 - view.gpus / max(view.capacity_gpus, 1.0)
    share = inputs.share_factor()
    return -(keys.WEIGHT_AGE * age + keys.WEIGHT_SIZE * size + keys.WEIGHT_SHARE * share)


def las(inputs: PolicyInputs) -> Floats:
    """Jobs of one queue do not stop each other: placement requires a strictly higher score."""
    attained_gpu_s = inputs.view.attained_s * inputs.view.gpus
    queue = np.zeros(len(attained_gpu_s))
    for limit in keys.LAS_LIMITS_GPU_S:
        queue += attained_gpu_s >= limit
    return queue


def gittins(inputs: PolicyInputs) -> Floats:
    """Gittins rank of the service in GPU-seconds: that of the time, times the GPUs."""
    inputs.times.used = True
    return expected.believed_gittins_s(inputs.view) * inputs.view.gpus


def srtf(inputs: PolicyInputs) -> Floats:
    return inputs.times.left_s()


def srsf(inputs: PolicyInputs) -> Floats:
    return inputs.times.left_s() * inputs.view.gpus


def _log10(values: Floats) -> Floats:
    return np.array(list(map(math.log10, values.tolist())), np.float64)


POLICIES: dict[str, BasePolicy] = {
    "fcfs": BasePolicy(fcfs),
    "priority_class": BasePolicy(fcfs),
    "smallest_first": BasePolicy(smallest_first),
    "sjf": BasePolicy(sjf),
    "saf": BasePolicy(saf),
    "f1": BasePolicy(f1),
    "wfp3": BasePolicy(wfp3, stable=False),
    "unicep": BasePolicy(unicep, stable=False),
    "multifactor": BasePolicy(multifactor, stable=False),
    "qssf": BasePolicy(saf, source="history"),
    "las": BasePolicy(las, running="any"),
    "gittins": BasePolicy(gittins, ratio=True, source="history", running="by_bin"),
    "srtf": BasePolicy(srtf, running="by_bin"),
    "srsf": BasePolicy(srsf, ratio=True, running="by_bin"),
}
"""All but `fair_share`, whose places depend on each other. Sorting keeps classes apart, so
`priority_class` is `fcfs` within a class."""


def has_stable_keys(pool: PoolConfigured) -> bool:
    """Return whether a policy with stable keys alone orders the queue."""
    if pool.learned or pool.shadows or pool.base_policy not in POLICIES or entitles_tenants(pool):
        return False
    return POLICIES[pool.base_policy].stable


def entitles_tenants(pool: PoolConfigured) -> bool:
    """Return whether each tenant's best jobs go first, see `entitlement`: by logarithms alone."""
    policy = POLICIES.get(pool.base_policy)
    return pool.tenant_floor > 0.0 and not pool.learned and policy is not None and policy.ratio


def order_survives_departures(pool: PoolConfigured) -> bool:
    """Return whether a ranking stays valid for the rest when jobs leave, and none is needed of
    running jobs."""
    return pool.preemption != "ranked" and has_stable_keys(pool)
