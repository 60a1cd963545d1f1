"""The place of one running job under run times of history, without arrays.

Between two rankings few jobs start, stop or come to the next bin; for so few of them arrays cost
more than the numbers in them. The results are bit for bit those of the array forms, as a test
checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from services.priority.core.history.distributions import BINS, bin_of, bin_start_s
from services.priority.core.history.rest import rest_of
from services.priority.core.policies import keys
from services.priority.core.queue.reported import attained_ms, left_of_row_s
from services.priority.core.queue.table import COLUMN, JobTable

FEW = 8
"""More jobs than this are faster by arrays."""
ENDS_S = (*(bin_start_s(b) for b in range(1, BINS)), math.inf)
"""End of each bin, s."""
GPUS, GO, LEFT, GITTINS = (COLUMN[name] for name in ("gpus", "go_ms", "left_s", "gittins_s"))


class RunningFigures(NamedTuple):
    """One running job: its GPUs, its distribution, and what it attained."""

    gpus: float
    left_s: float
    """Expected rest in s; of one that does not work, as it stopped."""
    gittins_s: float
    """Its Gittins rank in s, likewise."""
    p: list[float]
    """Its distribution; empty while it does not work."""
    attained_s: float

    def until_ms(self, now: int, time_scale: float, has_begun: bool) -> float:
        """Return the ms before which both numbers hold, at most two ms too early."""
        if not self.p:
            return float(now) if has_begun else math.inf
        if self.p[-1] <= 0.0:
            return float(now)
        wait_s = ENDS_S[bin_of(self.attained_s)] - self.attained_s
        return now + max(0.0, wait_s * 1000.0 / time_scale - 2.0)


def running_row(
    table: JobTable, row: int, now: int, time_scale: float
) -> tuple[RunningFigures, float]:
    """Return a running job, and the ms before which its numbers hold."""
    values = table.values[:, row].tolist()
    go_ms = values[GO]
    p: list[float] = []
    attained_s = 0.0
    left_s, gittins_s = values[LEFT], values[GITTINS]
    if not math.isnan(reported_s := left_of_row_s(values, now, time_scale)):
        return RunningFigures(values[GPUS], reported_s, reported_s, p, attained_s), float(now)
    if 0 < go_ms < now:
        attained_s = attained_ms(values, now, time_scale) / 1000.0 * time_scale
        p = table.distribution[row].tolist()
        left_s, gittins_s = rest_of(p, attained_s)
    job = RunningFigures(values[GPUS], left_s, gittins_s, p, attained_s)
    return job, job.until_ms(now, time_scale, go_ms > 0)


KEYS: Mapping[str, Callable[[RunningFigures], float]] = {
    "gittins": lambda job: job.gittins_s * job.gpus,
    "srtf": lambda job: keys.srtf(job.left_s),
    "srsf": lambda job: keys.srsf(job.left_s, job.gpus),
}
"""Key of a running job by the policies that weigh what history expects of it, lower first."""
