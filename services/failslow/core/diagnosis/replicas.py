"""The data-parallel groups of a gang, with the time of a micro-batch in each. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from services.failslow.core.diagnosis.cohorts import REPLICAS
from services.failslow.core.diagnosis.worker import known
from shared.contracts.parallelism import MOST_GROUPS, MOST_MICROBATCHES, Replicas
from shared.contracts.reports import IterationTimes


def replicas_of(rows: Iterable[IterationTimes], reports: int) -> Replicas | None:
    """Return the groups, each by its slowest process; `reports` of the newest medians count.

    None where a process does not report its place, its micro-batches and its own work, or where
    they contradict each other: a division by half of the facts could make the training slower.
    """
    own_s: dict[int, float] = {}
    counts: dict[int, int] = {}
    for row in rows:
        group, values = row.layout.get(REPLICAS), known(row.own_s[-reports:])
        if group is None or not row.microbatches or not values:
            return None
        if counts.setdefault(group, row.microbatches) != row.microbatches:
            return None
        own_s[group] = max(own_s.get(group, 0.0), median(values))
    groups, total = len(counts), sum(counts.values())
    is_complete = set(counts) == set(range(groups))
    if not (is_complete and 2 <= groups <= MOST_GROUPS and total <= MOST_MICROBATCHES):
        return None
    return Replicas(
        microbatch_s=tuple(own_s[group] / counts[group] for group in range(groups)),
        microbatches=tuple(counts[group] for group in range(groups)),
    )
