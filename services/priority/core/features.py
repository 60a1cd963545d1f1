"""What a learned policy sees of each job and of its pool; `simulator.kernel` has scalar twins.

Everything is a logarithm on a scale of about one. A job's base is -(ln gittins + ln rest)/2 -
ln GPUs: what the network adds is learnt. The context are means over all waiting and all running
jobs, so the scores do not depend on the order in which jobs are listed, and follow them when they
are listed otherwise (a deep set).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from services.priority.core import expected
from services.priority.core.feature_cache import STALE, FeatureCache
from services.priority.core.history import BINS, VALUES, bin_start_s, fill_prior
from services.priority.core.queue_view import QueueView
from services.priority.core.schema import FeatureSchema
from services.priority.core.table import Floats

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
"""Cluster s for which the context holds. It bears on the scores of all jobs alike: looked at anew
at every ranking it would have jobs overtake each other, and stop each other, at every change."""
_LEVELS = np.array([bin_start_s(b) for b in range(BINS)], np.float64)
_EDGES = _LEVELS[1:]
NOBODY = np.zeros(0, np.intp)
Seen: TypeAlias = tuple[NDArray[np.float32], Floats]
_PRIOR = np.zeros(BINS)
fill_prior(_PRIOR)


def compute_features(
    view: QueueView, by_history: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 [n, 8] and [4], in the order of `SCHEMA`; all finite.

    Without history a job's run time is as likely as any up to what its user said at most.
    """
    if view.feature_cache is None:
        columns, service = seen(view, by_history)
    else:
        columns, service = seen_lately(view, view.feature_cache, by_history)
    w = view.waiting
    gpus = np.maximum(view.gpus[:w], LEAST_GPUS)
    context = (
        np.log(1.0 + gpus.sum() / max(view.capacity_gpus, 1.0)),
        view.used_gpus / max(view.capacity_gpus, 1.0),
        mean(service[:w]),
        mean(service[w:]),
    )
    return columns, np.array(context, np.float32)


def seen_lately(view: QueueView, feature_cache: FeatureCache, by_history: bool) -> Seen:
    """As `seen`: rows that changed, or serve in another bin than they did, are looked at anew."""
    by = (view.capacity_gpus, view.time_scale, by_history)
    feature_cache.begin(by, view.rows_most, len(SCHEMA.columns))
    waiting, holding = view.rows[: view.waiting], view.rows[view.waiting :]
    part = view.part(
        waiting[feature_cache.marks[waiting] == STALE],
        holding[feature_cache.marks[holding] != marks_of(view.part(NOBODY, holding))],
    )
    if len(part.rows):
        feature_cache.columns[part.rows], feature_cache.service[part.rows] = seen(part, by_history)
        # Of whom history was not asked every moment counts.
        feature_cache.marks[part.rows] = np.where(part.mean_s > 0.0, marks_of(part), STALE)
    columns = feature_cache.columns[view.rows]
    columns[:, SCHEMA.columns.index("running")] = view.running
    return columns, feature_cache.service[view.rows]


def marks_of(view: QueueView) -> NDArray[np.int8]:
    """[n] the bin of a job's service; of one that does not work -1 - the bin."""
    bins = np.searchsorted(_EDGES, view.attained_s, side="right").astype(np.int8)
    return np.where(view.since_go_s > 0, bins, ~bins)


def seen(view: QueueView, by_history: bool) -> Seen:
    """[n, 8], and ln(Gittins rank, times GPUs) / 10, [n]."""
    gpus = np.maximum(view.gpus, LEAST_GPUS)
    capacity = max(view.capacity_gpus, 1.0)
    expects = of_history(view) if by_history else of_limits(view)
    gittins = np.log(expects.gittins_s + 1.0)
    left = np.log(expects.left_s + 1.0)
    level = _LEVELS[np.searchsorted(_EDGES, view.attained_s, side="right")]
    columns = (
        gittins / 10.0,
        left / 10.0,
        np.log(gpus) / 5.0,
        np.log(gpus / capacity) / 5.0,
        np.log(level + 60.0) / 10.0,
        np.log(np.maximum(expects.p90_s, 1.0) / np.maximum(expects.p10_s, 1.0)) / 10.0,
        np.log(view.restarts + 1.0),
        view.running.astype(np.float64),
    )
    return np.stack(columns, axis=1).astype(np.float32), (gittins + np.log(gpus)) / 10.0


class RuntimeBeliefs(NamedTuple):
    """What is believed of each job, [n] each."""

    gittins_s: Floats
    left_s: Floats
    p10_s: Floats
    p90_s: Floats


def of_history(view: QueueView) -> RuntimeBeliefs:
    return RuntimeBeliefs(expected.gittins_s(view), expected.left_s(view), view.p10_s, view.p90_s)


def of_limits(view: QueueView) -> RuntimeBeliefs:
    """Beliefs by the prior cut at the walltime; a job that outlived it ends in its present bin."""
    at = np.searchsorted(_EDGES, view.attained_s, side="right")
    limit = np.searchsorted(_EDGES, view.walltime_s, side="right")
    limit = np.where(np.isnan(view.walltime_s), BINS - 1, limit)
    kinds, which = np.unique(np.maximum(at, limit) * BINS + at, return_inverse=True)
    most, attained_s = kinds // BINS, _LEVELS[kinds % BINS]
    p = np.where(np.arange(BINS) <= most[:, None], _PRIOR, 0.0)
    seen = np.add.accumulate(p, axis=1)
    found = (
        expected.gittins(p, attained_s),
        expected.mean_left(p, attained_s),
        *(VALUES[np.argmax(seen >= q * seen[:, -1:], axis=1)] for q in (0.1, 0.9)),
    )
    return RuntimeBeliefs(*(each[which] for each in found))


def mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
