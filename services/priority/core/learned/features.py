"""Features of each job and of its pool for learned policies; `simulator.kernel` has scalar twins.

Everything is a logarithm on a scale of about one. A job's base is -(ln gittins + ln rest)/2 -
ln GPUs; the network learns what to add. The context is means over all waiting and all running
jobs, so the scores do not depend on the order in which jobs are listed (a deep set).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from services.priority.core.caches.feature_cache import STALE, FeatureCache
from services.priority.core.history.distributions import (
    BINS,
    VALUES,
    Floats,
    bin_start_s,
    fill_prior,
)
from services.priority.core.learned.schema import FeatureSchema
from services.priority.core.policies import expected
from services.priority.core.queue.queue_view import NO_ROWS, QueueView

SCHEMA = FeatureSchema(
    name="berth-queue-1",
    columns=(
        "ln_gittins_s/10",
        "ln_left_s/10",
        "ln_gpus/5",
        "ln_share_of_pool/5",
        "ln_attained_s/10",
        "ln_p90_over_p10/10",
        "ln_restarts",
        "running",
    ),
    context=("ln_pressure", "used_share", "ln_service_waiting/10", "ln_service_running/10"),
)
LEAST_GPUS = 0.01
CONTEXT_S = 3600.0
"""Cluster s for which the context holds. It affects the scores of all jobs: computed anew at every
ranking it would have jobs overtake each other, and stop each other, at every change."""
_LEVELS = np.array([bin_start_s(b) for b in range(BINS)], np.float64)
_EDGES = _LEVELS[1:]
FeatureRows: TypeAlias = tuple[NDArray[np.float32], Floats]
"""Features [n, F], and ln(Gittins rank times GPUs) / 10, [n]."""
_PRIOR = np.zeros(BINS)
fill_prior(_PRIOR)


def compute_features(
    view: QueueView, by_history: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return float32 [n, 8] and [4], in the order of `SCHEMA`; all finite.

    Without history every run time up to the user's limit is equally likely.
    """
    if view.feature_cache is None:
        columns, service = feature_rows(view, by_history)
    else:
        columns, service = cached_rows(view, view.feature_cache, by_history)
    w = view.waiting
    gpus = np.maximum(view.gpus[:w], LEAST_GPUS)
    context = (
        np.log(1.0 + gpus.sum() / max(view.capacity_gpus, 1.0)),
        view.used_gpus / max(view.capacity_gpus, 1.0),
        mean(service[:w]),
        mean(service[w:]),
    )
    return columns, np.array(context, np.float32)


def cached_rows(view: QueueView, cache: FeatureCache, by_history: bool) -> FeatureRows:
    """As `feature_rows`, computing only rows that changed or serve in another bin than they did."""
    key = (view.capacity_gpus, view.time_scale, by_history)
    cache.begin(key, view.rows_most, len(SCHEMA.columns))
    waiting, holding = view.rows[: view.waiting], view.rows[view.waiting :]
    part = view.part(
        waiting[cache.marks[waiting] == STALE],
        holding[cache.marks[holding] != marks_of(view.part(NO_ROWS, holding))],
    )
    if len(part.rows):
        cache.columns[part.rows], cache.service[part.rows] = feature_rows(part, by_history)
        # Without an estimate of history the features change at every moment.
        cache.marks[part.rows] = np.where(part.mean_s > 0.0, marks_of(part), STALE)
    columns = cache.columns[view.rows]
    columns[:, SCHEMA.columns.index("running")] = view.running
    return columns, cache.service[view.rows]


def marks_of(view: QueueView) -> NDArray[np.int8]:
    """Return the bin of each job's service, [n]; -1 - the bin if the job does not work."""
    bins = np.searchsorted(_EDGES, view.attained_s, side="right").astype(np.int8)
    return np.where(view.since_go_s > 0, bins, ~bins)


def feature_rows(view: QueueView, by_history: bool) -> FeatureRows:
    """Compute the features of all jobs of a view."""
    gpus = np.maximum(view.gpus, LEAST_GPUS)
    capacity = max(view.capacity_gpus, 1.0)
    beliefs = history_beliefs(view) if by_history else limit_beliefs(view)
    gittins = np.log(beliefs.gittins_s + 1.0)
    left = np.log(beliefs.left_s + 1.0)
    level = _LEVELS[np.searchsorted(_EDGES, view.attained_s, side="right")]
    columns = (
        gittins / 10.0,
        left / 10.0,
        np.log(gpus) / 5.0,
        np.log(gpus / capacity) / 5.0,
        np.log(level + 60.0) / 10.0,
        np.log(np.maximum(beliefs.p90_s, 1.0) / np.maximum(beliefs.p10_s, 1.0)) / 10.0,
        np.log(view.restarts + 1.0),
        view.running.astype(np.float64),
    )
    return np.stack(columns, axis=1).astype(np.float32), (gittins + np.log(gpus)) / 10.0


class RuntimeBeliefs(NamedTuple):
    """Beliefs about the run time of each job, [n] each."""

    gittins_s: Floats
    left_s: Floats
    p10_s: Floats
    p90_s: Floats


def history_beliefs(view: QueueView) -> RuntimeBeliefs:
    return RuntimeBeliefs(expected.gittins_s(view), expected.left_s(view), view.p10_s, view.p90_s)


def limit_beliefs(view: QueueView) -> RuntimeBeliefs:
    """Beliefs by the prior cut at the walltime; a job that outlived it ends in its present bin."""
    at = np.searchsorted(_EDGES, view.attained_s, side="right")
    limit = np.searchsorted(_EDGES, view.walltime_s, side="right")
    limit = np.where(np.isnan(view.walltime_s), BINS - 1, limit)
    kinds, which = np.unique(np.maximum(at, limit) * BINS + at, return_inverse=True)
    most, attained_s = kinds // BINS, _LEVELS[kinds % BINS]
    p = np.where(np.arange(BINS) <= most[:, None], _PRIOR, 0.0)
    ended = np.add.accumulate(p, axis=1)
    beliefs = (
        expected.gittins(p, attained_s),
        expected.mean_left(p, attained_s),
        *(VALUES[np.argmax(ended >= q * ended[:, -1:], axis=1)] for q in (0.1, 0.9)),
    )
    return RuntimeBeliefs(*(values[which] for values in beliefs))


def mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
