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


def cause_of_process(
    rows: Mapping[int, IterationTimes], nodes: Mapping[int, str], process: int, reports: int
) -> Diagnosis:
    """Return the cause; `reports` is how many of the newest medians of each process count.

    Rows and nodes are by process.
    """
    own_s = {number: known(row.own_s[-reports:]) for number, row in rows.items()}
    compute_s = {number: median(values) for number, values in own_s.items() if values}
    if process not in compute_s:
        return NO_OWN_WORK
    layouts = {number: row.layout for number, row in rows.items() if number in compute_s}
    alike = next(numbers for numbers in cohorts(layouts) if process in numbers)
    diagnosis = diagnose({number: compute_s[number] for number in alike}, {}, nodes)
    suspect = next((part for part in diagnosis.suspects if process in part.ranks), None)
    if suspect is None:
        return UNKNOWN
    place = diagnosis.suspects.index(suspect)
    return Diagnosis(diagnosis.cause, (suspect,), suspect.confidence, (diagnosis.evidence[place],))


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
