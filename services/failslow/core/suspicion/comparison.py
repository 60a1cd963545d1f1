"""Compares the processes of a gang that do the same work, and finds why one of them is slow. Pure.

A worker may run several processes, such as one per GPU. They are compared with each other and with
those of all other workers; a worker is as slow as the slowest of its processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from services.failslow.core.diagnosis.cohorts import split
from services.failslow.core.diagnosis.verdict import Diagnosis
from services.failslow.core.diagnosis.worker import cause_of_process
from services.failslow.core.measures.contention import busy_host, judge_with_delays
from services.failslow.core.measures.peers import SlowWorker, Thresholds, Windows
from services.failslow.core.state import GangState
from shared.contracts.reports import IterationTimes

SHORTEST_S, LONGEST_S = 1e-6, 1e9
"""Bounds of a plausible iteration time; a worker that reports another one is not compared."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Reports of the processes of a gang by number, their rank in the training if known."""

    by_process: dict[int, IterationTimes]

    @classmethod
    def of(cls, gang: GangState, times: Sequence[IterationTimes]) -> Rows:
        """Take the plausible ones of the gang's present attempt."""
        own = [row for row in times if _is_of(gang, row) and is_plausible(row.iteration_s)]
        return cls(dict(zip(numbers(own), own, strict=True)))

    @property
    def windows(self) -> Windows:
        return {process: row.iteration_s for process, row in self.by_process.items()}

    @property
    def delays(self) -> Windows:
        rows = self.by_process.items()
        return {process: tuple(delay or 0.0 for delay in row.delay_s) for process, row in rows}

    @property
    def nodes(self) -> dict[int, str]:
        return {process: row.node_id for process, row in self.by_process.items()}

    def of_worker(self, rank: int) -> Iterator[int]:
        return (process for process, row in self.by_process.items() if row.rank == rank)


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """Verdict on the workers of a gang by rank; a worker in neither field is left as it is."""

    slow: dict[int, SlowWorker]
    healthy: tuple[int, ...]
    processes: dict[int, int]
    """Slowest process of each slow worker."""
    busy: frozenset[int]
    """Processes that are slow by the wait for a processor alone."""


def judge_gang(gang: GangState, rows: Rows, limits: Thresholds, noise: float = 0.0) -> GangVerdict:
    """Compare the processes that do the same work, at least so much noise assumed."""
    bounds = replace(limits, noise=max(limits.noise, noise))
    layouts = {process: row.layout for process, row in rows.by_process.items()}
    parts = split(rows.windows, layouts)
    verdicts = [judge_with_delays(part, rows.delays, bounds) for part in parts]
    slow = {process: figures for verdict in verdicts for process, figures in verdict.slow.items()}
    healthy = {process for verdict in verdicts for process in verdict.healthy}
    busy = frozenset(process for verdict in verdicts for process in verdict.busy)
    worst: dict[int, int] = {}
    for process in sorted(slow, key=lambda number: (slow[number].slowdown, -number)):
        worst[rows.by_process[process].rank] = process
    well = (rank for rank in gang.workers if _is_well(set(rows.of_worker(rank)), healthy))
    return GangVerdict(
        {rank: slow[worst[rank]] for rank in sorted(worst)}, tuple(well), worst, busy
    )


def cause_of(rows: Rows, verdict: GangVerdict, rank: int, reports: int, gpus: float) -> Diagnosis:
    """Return why a slow worker is slow; `reports` is how many of the newest ones count.

    `gpus` are those of the whole gang.
    """
    process = verdict.processes[rank]
    if process not in verdict.busy:
        gpus_per_process = gpus / len(rows.by_process)
        return cause_of_process(rows.by_process, rows.nodes, process, reports, gpus_per_process)
    node_id = rows.by_process[process].node_id
    return busy_host(rows.windows, rows.delays, node_id, process, verdict.slow[rank])


def gpu_of(gang: GangState, rows: Rows, rank: int, cause: Diagnosis) -> int | None:
    """Return the number on its node of the GPU that is slow; None where it is not known.

    Of a worker with one process per GPU, the n-th process has the n-th GPU of the allocation, as
    with torchrun and its `LOCAL_RANK`.
    """
    suspect = cause.suspects[0] if cause.suspects else None
    gpus, processes = gang.workers[rank].gpus, sorted(rows.of_worker(rank))
    if suspect is None or suspect.kind != "gpu" or len(processes) != len(gpus):
        return None
    return gpus[processes.index(suspect.ranks[0])] if suspect.ranks[0] in processes else None


def numbers(rows: Sequence[IterationTimes]) -> Sequence[int]:
    """Return the number of each row: its process, else its worker, else its place."""
    processes = [row.process for row in rows if row.process is not None]
    if len(processes) == len(rows) == len(set(processes)):
        return processes
    ranks = [row.rank for row in rows]
    return ranks if len(set(ranks)) == len(rows) else range(len(rows))


def is_plausible(iteration_s: Sequence[float]) -> bool:
    return all(SHORTEST_S <= value <= LONGEST_S for value in iteration_s)


def _is_of(gang: GangState, row: IterationTimes) -> bool:
    worker = gang.workers.get(row.rank)
    return worker is not None and worker.allocation_id == row.allocation_id


def _is_well(processes: set[int], healthy: set[int]) -> bool:
    return bool(processes) and all(process in healthy for process in processes)
