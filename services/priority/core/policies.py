"""Classic orders of a queue in one seam: a key per job, lower first, over the arrays of a view.

Each is the array twin of the scalar function of the same name in `keys`, which is the truth; a
test compares them bit for bit. Logarithms are taken job by job: arrays round them otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from services.priority.core import expected, keys
from services.priority.core.queue_view import QueueView
from services.priority.core.runtimes import RunTimes
from services.priority.core.table import Floats
from shared.contracts.access import PoolConfigured, RuntimeSource


@dataclass(frozen=True, slots=True)
class PolicyInputs:
    """What a policy may look at."""

    view: QueueView
    times: RunTimes
    share_factor: Callable[[], Floats]
    """Fair-share factor of each job's tenant, [n], in (0, 1]."""


Keys = Callable[[PolicyInputs], Floats]


@dataclass(frozen=True, slots=True)
class BasePolicy:
    """A key per job and how it becomes a score.

    The score is `-key`, so that a margin between two jobs has the key's unit; with `ratio` it is
    `-ln(key)`, so that a margin of 0.7 means half the key.
    """

    keys: Keys
    ratio: bool = False
    source: RuntimeSource | None = None
    """Where it takes run times from, whatever the pool says."""
    has_stable_keys: bool = True
    """The key of a waiting job depends on that job alone and holds until it waits no more."""


LEAST_KEY = 1e-9


def scores_of(policy: BasePolicy, ask: PolicyInputs) -> Floats:
    """Higher goes first, [n]."""
    found = policy.keys(ask)
    if not policy.ratio:
        return -found
    return -np.array(list(map(math.log, np.maximum(found, LEAST_KEY).tolist())), np.float64)


def fcfs(ask: PolicyInputs) -> Floats:
    return ask.view.submit_s


def smallest_first(ask: PolicyInputs) -> Floats:
    return ask.view.gpus


def sjf(ask: PolicyInputs) -> Floats:
    return ask.times.run_s()


def saf(ask: PolicyInputs) -> Floats:
    return ask.times.run_s() * ask.view.gpus


def f1(ask: PolicyInputs) -> Floats:
    submit = _log10(np.maximum(ask.view.submit_s, 1.0))
    return _log10(np.maximum(ask.times.run_s(), 1.0)) * ask.view.gpus + 870.0 * submit


def wfp3(ask: PolicyInputs) -> Floats:
    ratio = ask.view.wait_s / np.maximum(ask.times.run_s(), 1.0)
    return -(ratio * ratio * ratio) * ask.view.gpus


def unicep(ask: PolicyInputs) -> Floats:
    sizes, which = np.unique(np.maximum(ask.view.gpus, 1.0), return_inverse=True)
    logs = np.array([math.log2(size) for size in sizes.tolist()], np.float64)[which]
    return -ask.view.wait_s / (logs * ask.times.run_s() + 1e-5)


def multifactor(ask: PolicyInputs) -> Floats:
    view = ask.view
    age = np.minimum(view.wait_s / keys.MAX_AGE_S, 1.0)
    size = 1.0 - view.gpus / max(view.capacity_gpus, 1.0)
    share = ask.share_factor()
    return -(keys.WEIGHT_AGE * age + keys.WEIGHT_SIZE * size + keys.WEIGHT_SHARE * share)


def las(ask: PolicyInputs) -> Floats:
    """In one queue nobody stops another: placement asks for a strictly higher score."""
    attained_gpu_s = ask.view.attained_s * ask.view.gpus
    queue = np.zeros(len(attained_gpu_s))
    for limit in keys.LAS_LIMITS_GPU_S:
        queue += attained_gpu_s >= limit
    return queue


def gittins(ask: PolicyInputs) -> Floats:
    """The rank of its service in GPU-seconds: that of its time, times its GPUs."""
    ask.times.asked = True
    return expected.gittins_s(ask.view) * ask.view.gpus


def srtf(ask: PolicyInputs) -> Floats:
    return ask.times.left_s()


def srsf(ask: PolicyInputs) -> Floats:
    return ask.times.left_s() * ask.view.gpus


def _log10(values: Floats) -> Floats:
    return np.array(list(map(math.log10, values.tolist())), np.float64)


POLICIES: dict[str, BasePolicy] = {
    "fcfs": BasePolicy(fcfs),
    "priority_class": BasePolicy(fcfs),
    "smallest_first": BasePolicy(smallest_first),
    "sjf": BasePolicy(sjf),
    "saf": BasePolicy(saf),
    "f1": BasePolicy(f1),
    "wfp3": BasePolicy(wfp3, has_stable_keys=False),
    "unicep": BasePolicy(unicep, has_stable_keys=False),
    "multifactor": BasePolicy(multifactor, has_stable_keys=False),
    "qssf": BasePolicy(saf, source="history"),
    "las": BasePolicy(las),
    "gittins": BasePolicy(gittins, ratio=True, source="history"),
    "srtf": BasePolicy(srtf),
    "srsf": BasePolicy(srsf, ratio=True),
}
"""All but `fair_share`, whose places depend on each other. Classes are kept apart by whoever
sorts, so `priority_class` is `fcfs` inside a class."""


def has_stable_keys(pool: PoolConfigured) -> bool:
    """Nothing but a policy whose keys hold orders the line."""
    if pool.learned or pool.shadows or pool.base_policy not in POLICIES:
        return False
    return POLICIES[pool.base_policy].has_stable_keys


def order_survives_departures(pool: PoolConfigured) -> bool:
    """What was said of a line stays true of those who stay in it, and of nobody else is asked."""
    return pool.preemption != "ranked" and has_stable_keys(pool)
