"""The cause of a slow worker, by the reports of its gang. Pure.

Its own work is what it does before it waits for others. Where that is longer than its peers', the
worker computes slowly: its GPU, or its node where all workers of the node do. Where a training
reports whole iterations alone, compute and communication look the same, and the cause is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from services.failslow.core.diagnosis.cohorts import cohorts
from services.failslow.core.diagnosis.verdict import UNKNOWN, Diagnosis, diagnose
from shared.contracts.reports import IterationTimes

NO_OWN_WORK = Diagnosis(
    "unknown", (), 0.0, ("own work is not reported, so that compute and communication look alike",)
)


def cause_of_worker(
    times: Sequence[IterationTimes], nodes: Mapping[int, str], rank: int, reports: int
) -> Diagnosis:
    """Return the cause; `reports` is how many of the newest medians of each rank count."""
    own_s = {row.rank: known(row.own_s[-reports:]) for row in times}
    compute_s = {row: median(values) for row, values in own_s.items() if values}
    if rank not in compute_s:
        return NO_OWN_WORK
    layouts = {row.rank: row.layout for row in times if row.rank in compute_s}
    alike = next(ranks for ranks in cohorts(layouts) if rank in ranks)
    diagnosis = diagnose({row: compute_s[row] for row in alike}, {}, nodes)
    suspect = next((part for part in diagnosis.suspects if rank in part.ranks), None)
    if suspect is None:
        return UNKNOWN
    place = diagnosis.suspects.index(suspect)
    return Diagnosis(diagnosis.cause, (suspect,), suspect.confidence, (diagnosis.evidence[place],))


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
