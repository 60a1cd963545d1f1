"""What a learned policy sees of each job and of its pool; `simulator.kernel` has scalar twins.

Everything is a logarithm on a scale of about one. A job's base is -(ln gittins + ln rest)/2 -
ln GPUs: what the network adds is learnt. The context are means over all waiting and all running
jobs, so the scores do not depend on the order in which jobs are listed, and follow them when they
are listed otherwise (a deep set).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.priority.core import expected
from services.priority.core.history import BINS, VALUES, level_s, start
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
_LEVELS = np.array([level_s(b) for b in range(BINS)], np.float64)
_EDGES = _LEVELS[1:]
_PRIOR = np.zeros(BINS)
start(_PRIOR)


def features(
    view: QueueView, by_history: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 [n, 8] and [4], in the order of `SCHEMA`; all finite.

    Without history a job's run time is as likely as any up to what its user said at most.
    """
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
    service = (gittins + np.log(gpus)) / 10.0
    w = view.waiting
    context = (
        np.log(1.0 + gpus[:w].sum() / capacity),
        view.used_gpus / capacity,
        mean(service[:w]),
        mean(service[w:]),
    )
    return np.stack(columns, axis=1).astype(np.float32), np.array(context, np.float32)


class Expects(NamedTuple):
    """What is believed of each job, [n] each."""

    gittins_s: Floats
    left_s: Floats
    p10_s: Floats
    p90_s: Floats


def of_history(view: QueueView) -> Expects:
    return Expects(expected.gittins_s(view), expected.left_s(view), view.p10_s, view.p90_s)


def of_limits(view: QueueView) -> Expects:
    """Of `history.start`'s distribution cut at the walltime; who outlived that is in its bin."""
    at = np.searchsorted(_EDGES, view.attained_s, side="right")
    limit = np.searchsorted(_EDGES, view.walltime_s, side="right")
    limit = np.where(np.isnan(view.walltime_s), BINS - 1, limit)
    kinds, which = np.unique(np.maximum(at, limit) * BINS + at, return_inverse=True)
    most, attained_s = kinds // BINS, _LEVELS[kinds % BINS]
    p = np.where(np.arange(BINS) <= most[:, None], _PRIOR, 0.0)
    seen = np.add.accumulate(p, axis=1)
    found = (
        expected.gittins(p, attained_s), expected.mean_left(p, attained_s),
        *(VALUES[np.argmax(seen >= q * seen[:, -1:], axis=1)] for q in (0.1, 0.9)),
    )  # fmt: skip
    return Expects(*(each[which] for each in found))


def mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
