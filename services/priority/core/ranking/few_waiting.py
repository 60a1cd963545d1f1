"""The place of one waiting job in the order of a policy with stable keys, without arrays.

Between two rankings few jobs begin to wait; for so few of them arrays cost more than the numbers in
them. The results are bit for bit those of the array forms, as a test checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from services.priority.core.policies import keys
from services.priority.core.policies.runtimes import LEAST_S
from services.priority.core.queue.queue_view import Clock
from services.priority.core.queue.table import COLUMN, JobTable
from shared.contracts.pools import RuntimeSource

SUBMIT, TIER, GPUS, KEPT = (COLUMN[name] for name in ("submit_ms", "tier", "gpus", "kept_ms"))
WALLTIME, DURATION, MEAN = (COLUMN[name] for name in ("walltime_s", "duration_s", "mean_s"))
LEFT, GITTINS, SAMPLES = (COLUMN[name] for name in ("left_s", "gittins_s", "samples"))


class WaitingRow(NamedTuple):
    """One waiting job; times are cluster seconds."""

    tier: float
    gpus: float
    submit_s: float
    """Since the submission of the pool's first job."""
    run_s: float
    """Of the whole job, by the source of run times."""
    left_s: float
    """Its rest, likewise."""
    gittins_s: float
    mean_s: float
    """Run time by history, whatever the source."""
    samples: float
    """Jobs that it is learnt from; 0: it is the prior's."""
    walltime_s: float
    """NaN: none is declared."""


def waiting_row(table: JobTable, row: int, clock: Clock, source: RuntimeSource) -> WaitingRow:
    """Return a job that waits, with run times as `RunTimes` takes them from that source."""
    values: list[float] = table.values[:, row].tolist()
    run_s = math.nan
    if source == "oracle":
        run_s = values[DURATION]
    if source != "history" and math.isnan(run_s):
        run_s = values[WALLTIME]
    left_s = values[LEFT]
    if math.isnan(run_s):
        run_s = values[MEAN]
    else:
        left_s = max(LEAST_S, run_s - values[KEPT] / 1000.0 * clock.time_scale)
    submit_s = (values[SUBMIT] - clock.origin) / 1000.0 * clock.time_scale
    return WaitingRow(
        tier=values[TIER],
        gpus=values[GPUS],
        submit_s=submit_s,
        run_s=run_s,
        left_s=left_s,
        gittins_s=values[GITTINS],
        mean_s=values[MEAN],
        samples=values[SAMPLES],
        walltime_s=values[WALLTIME],
    )


KEYS: Mapping[str, Callable[[WaitingRow], float]] = {
    "fcfs": lambda job: keys.fcfs(job.submit_s),
    "smallest_first": lambda job: keys.smallest_first(job.gpus),
    "sjf": lambda job: keys.sjf(job.run_s),
    "saf": lambda job: keys.saf(job.run_s, job.gpus),
    "qssf": lambda job: keys.saf(job.run_s, job.gpus),
    "gittins": lambda job: job.gittins_s * job.gpus,
    "srtf": lambda job: keys.srtf(job.left_s),
    "srsf": lambda job: keys.srsf(job.left_s, job.gpus),
}
"""Key of a waiting job by policy, lower first."""
TIMELESS = frozenset({"fcfs", "smallest_first"})
"""Those of them that need no run times."""
