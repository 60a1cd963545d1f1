"""The cause of a slow worker, by the reports of its gang. Pure.

Its own work is what it does before it waits for others. Where that is longer than its peers', the
worker computes slowly: its GPU, or its node where all workers of the node do. A training on CPUs,
which reports its wait for a processor, names no GPU. Where a training reports whole iterations
alone, compute and communication look the same, and the cause is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from services.failslow.core.diagnosis.cohorts import cohorts
from services.failslow.core.diagnosis.verdict import UNKNOWN, Diagnosis, diagnose, sentence
from shared.contracts.reports import IterationTimes

NO_OWN_WORK = Diagnosis(
    "unknown", (), 0.0, ("own work is not reported, so that compute and communication look alike",)
)
ON_CPUS = "it trains on CPUs: the node or the program is slow, and no GPU"


def cause_of_process(
    rows: Mapping[int, IterationTimes],
    nodes: Mapping[int, str],
    process: int,
    reports: int,
    gpus_per_process: float = 1.0,
) -> Diagnosis:
    """Return the cause; `reports` is how many of the newest medians of each process count.

    Rows and nodes are by process. The GPU is named where each process has one: a process with
    several, or with none, says no more than that it is slow itself.
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
    on_cpus = bool(rows[process].delay_s)
    if suspect.kind == "gpu" and (on_cpus or not 0 < gpus_per_process <= 1):
        suspect = replace(suspect, kind="")
    evidence = (sentence(suspect), *([ON_CPUS] if on_cpus else []))
    return Diagnosis(diagnosis.cause, (suspect,), suspect.confidence, evidence)


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
