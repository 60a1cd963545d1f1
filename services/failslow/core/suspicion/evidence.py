"""The last reports of each process of watched workers: pure, disposable, not part of the ledger.

A shell keeps one `Evidence` per lane. Losing it or a report, or reading one twice, costs at most
the time until `Thresholds.reports` new reports have come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low

from services.failslow.core.gangs import times_of_workers
from services.failslow.core.measures.node_notes import NodeNotes
from services.failslow.core.measures.own_times import own_times, own_work
from services.failslow.core.measures.peers import Thresholds
from services.failslow.core.state import FailSlowState, GangState
from services.failslow.core.suspicion.attempts import OfAttempts
from services.failslow.core.suspicion.comparison import GangVerdict, Rows, is_plausible, judge_gang
from shared.contracts.faults import GangWorker
from shared.contracts.reports import IterationTimes, TelemetryReported, WorkersIterated

REMEMBERED = 8
FRESH_MS = 30_000
MOST_PROCESSES = 16
"""Processes of one worker that are followed, as many as an agent passes on; a program names them
itself, so one that names ever new ones pushes out its own."""
Process = tuple[str, int | None]
"""Allocation of the worker, and rank of the process in its training where it is known."""


@dataclass(slots=True)
class ReportWindow:
    """Medians of one process's reports; `at` is the executor's clock at the newest."""

    at: int = 0
    medians: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Of own work without the wait for a processor, where that is known."""
    delays: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    is_own: bool = False
    """Whether the newest one is of own work, and not of whole iterations."""
    on_processors: bool = False
    """Whether the process computes on CPUs, by the newest one."""
    layout: dict[str, int] = field(default_factory=dict)
    microbatches: int | None = None


WorkerWindows = dict[int | None, ReportWindow]
"""Windows of the processes of one worker."""


class Evidence:
    """Collects reports, and selects the gangs about which the decider has something to decide."""

    def __init__(self, limits: Thresholds) -> None:
        self._limits = limits
        self._windows: OfAttempts[dict[str, WorkerWindows]] = OfAttempts(dict)
        """By job and allocation."""
        self._touched: dict[str, None] = {}
        self._notes = NodeNotes()

    def add(self, report: TelemetryReported, gangs: Mapping[str, GangState]) -> None:
        """Add a report; one read twice, or after a younger one, changes nothing."""
        self._notes.add(report)
        for gang, times in times_of_workers(report, gangs):
            if not gang.validates:
                self._note(gang, times, report.at)

    def take_news(self, state: FailSlowState) -> list[WorkersIterated]:
        """Return one message per gang with a new suspicion or recovery since the last call."""
        touched, self._touched = self._touched, {}
        limits = state.strictness.thresholds(self._limits)
        self._windows.forget_ended(state.gangs)
        messages: list[WorkersIterated] = []
        for job_id in touched:
            gang = state.gangs.get(job_id)
            if gang is not None:
                times = self._times(job_id, gang)
                noise = self._noise(job_id, gang, limits.reports)
                verdict = judge_gang(gang, Rows.of(gang, times), limits, noise)
                if has_news(gang, verdict):
                    notes = self._notes_on(job_id, gang, verdict)
                    messages.append(WorkersIterated(times=times, noise=noise, notes=notes))
        return messages

    def _note(self, gang: GangState, times: IterationTimes, at: int) -> None:
        own = own_work(times) if is_plausible(own_times(times)) else None
        if own is None:
            return
        workers = self._windows.begin(times.job_id, gang.attempt)
        window = window_of(workers.setdefault(times.allocation_id, {}), times.process)
        if at <= window.at:
            return
        window.at = at
        window.medians.append(own.net_s)
        window.delays.append(own.delay_s)
        window.errors.append(own.error)
        window.is_own, window.on_processors = bool(times.own_s), own.on_processors
        window.layout = times.layout
        window.microbatches = times.microbatches
        self._touched[times.job_id] = None

    def _of_job(self, job_id: str, gang: GangState) -> dict[Process, ReportWindow]:
        workers = self._windows.of(job_id, gang.attempt) or {}
        return {
            (allocation_id, process): window
            for allocation_id, own in workers.items()
            for process, window in own.items()
        }

    def _times(self, job_id: str, gang: GangState) -> tuple[IterationTimes, ...]:
        """Return the times of a gang's processes, without those that stopped reporting."""
        windows = self._of_job(job_id, gang)
        newest = max((window.at for window in windows.values()), default=0)
        workers = {worker.allocation_id: worker for worker in gang.workers.values()}
        return tuple(
            row_of(job_id, workers[allocation_id], process, window)
            for (allocation_id, process), window in sorted(windows.items(), key=by_process)
            if allocation_id in workers and newest - window.at < FRESH_MS
        )

    def _notes_on(
        self, job_id: str, gang: GangState, verdict: GangVerdict
    ) -> dict[str, tuple[str, ...]]:
        """Return what the nodes of slow workers measured of themselves, by node."""
        at = max(window.at for window in self._of_job(job_id, gang).values())
        nodes = dict.fromkeys(gang.workers[rank].node_id for rank in verdict.slow)
        return {node: notes for node in nodes if (notes := self._notes.of(node, at))}

    def _noise(self, job_id: str, gang: GangState, reports: int) -> float:
        """Return how uncertain the newest medians are by the scatter within the reports.

        Most workers are not slow, so that the median is of such a one.
        """
        windows = self._of_job(job_id, gang).values()
        errors = [median_low(list(window.errors)[-reports:]) for window in windows if window.errors]
        return median_low(errors) if errors else 0.0


def window_of(own: WorkerWindows, process: int | None) -> ReportWindow:
    """Return the window of a process; where there are too many, the stalest one makes room."""
    window = own.get(process)
    if window is None:
        if len(own) == MOST_PROCESSES:
            del own[min(own, key=lambda known: own[known].at)]
        window = own[process] = ReportWindow()
    return window


def by_process(entry: tuple[Process, ReportWindow]) -> tuple[int, int]:
    """Sort by worker, then by process."""
    allocation_id, process = entry[0]
    return int(allocation_id.rpartition("/")[2]), -1 if process is None else process


def row_of(
    job_id: str, worker: GangWorker, process: int | None, window: ReportWindow
) -> IterationTimes:
    return IterationTimes(
        job_id=job_id,
        allocation_id=worker.allocation_id,
        node_id=worker.node_id,
        rank=worker.rank,
        process=process,
        iteration_s=tuple(window.medians),
        own_s=tuple(window.medians) if window.is_own else (),
        delay_s=tuple(window.delays) if window.on_processors else (),
        layout=window.layout,
        microbatches=window.microbatches,
    )


def has_news(gang: GangState, verdict: GangVerdict) -> bool:
    return any(is_new(gang, rank) for rank in verdict.slow) or any(
        rank in gang.open for rank in verdict.healthy
    )


def is_new(gang: GangState, rank: int) -> bool:
    """Return whether a suspicion may be opened: one per worker, and none that was dismissed."""
    return rank not in gang.open and rank not in gang.muted
