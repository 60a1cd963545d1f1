"""Lines of one job in their order: each once, and with the number of those that are missing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from shared.job_logs.chunk import Run, Worker
from shared.projections.jobs import ENDED_PHASES


class NextStay(NamedTuple):
    """Where a job that left its pool goes on, with the id that it has there."""

    pool: str
    job_id: str


class JobNow(NamedTuple):
    """A job in its read model, in one of its pools; `attempt` is 0 before it is placed there."""

    phase: str
    reason: str
    attempt: int
    workers: int
    prints: bool = True
    """Whether its workers are processes; those of a virtual pool have no output."""
    started: bool = True
    """Whether its last attempt did; the output of another ends only where a step of it was."""
    silent_nodes: tuple[str, ...] = ()
    """Nodes of its last attempt that are not heard."""
    failure: Mapping[str, object] | None = None
    """Why the attempt before could not start or did not end well; None after a start."""
    pool: str = ""
    next_stay: NextStay | None = None
    """Set once it has left this pool for another one."""

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED_PHASES


class LogLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line with its position in the output of its worker."""

    attempt: int
    rank: int
    line: int
    text: str
    missing: int = 0
    """Number of lines before this one that are not kept, or not readable now."""
    job_id: str = ""
    """Id of the job in a pool to which it was transferred, where attempts begin with 1 again."""


class WorkerRun(NamedTuple):
    """Lines of a worker without a gap."""

    at_ms: int
    worker: Worker
    run: Run

    @property
    def first(self) -> int:
        return self.run.first

    @property
    def next(self) -> int:
        return self.run.next


class Numbered(Protocol):
    """Lines of a worker without a gap, by their numbers."""

    @property
    def at_ms(self) -> int: ...

    @property
    def worker(self) -> Worker: ...

    @property
    def first(self) -> int: ...

    @property
    def next(self) -> int: ...


class Selection(NamedTuple):
    """The lines of a job that are read: the last ones, or those from a number of one worker on."""

    most_lines: int = 1000
    rank: int | None = None
    attempt: int | None = None
    from_line: int | None = None

    def has(self, worker: Worker) -> bool:
        return self.rank in (None, worker.rank) and self.attempt in (None, worker.attempt)

    @property
    def worker(self) -> Worker | None:
        """The one worker that is read; None for several."""
        if self.rank is None or self.attempt is None:
            return None
        return Worker(self.attempt, self.rank)


ALL = Selection()


class JobLog:
    """Keeps which lines of one job were read: one that is delivered twice is yielded once."""

    def __init__(self, selection: Selection = ALL, later_id: str = "") -> None:
        """`later_id` is the id that its lines name, of a job that was transferred."""
        self._selection = selection
        self._later_id = later_id
        self.due: dict[Worker, int] = {}
        self._ended: set[Worker] = set()

    @property
    def ended_workers(self) -> int:
        """Number of workers, of all attempts, whose output is complete."""
        return len(self._ended)

    def note_end(self, worker: Worker) -> None:
        self._ended.add(worker)

    def open_workers(self, job: JobNow) -> list[int]:
        """Return the selected workers of the last attempt of which lines may be missing."""
        workers = (Worker(job.attempt, rank) for rank in range(job.workers))
        selected = (worker for worker in workers if self._selection.has(worker))
        return [worker.rank for worker in selected if worker not in self._ended]

    def lines(self, worker: Worker, run: Run) -> Iterator[LogLine]:
        """Yield the lines of a run that are new; the runs of a worker come in their order."""
        due = self.due.get(worker, 0)
        missing = max(0, run.first - due)
        for number, text in enumerate(run.lines, run.first):
            if number >= due:
                yield LogLine(worker.attempt, worker.rank, number, text, missing, self._later_id)
                missing = 0
        self.due[worker] = max(due, run.next)


Lines = TypeVar("Lines", bound=Numbered)


class Newest(Generic[Lines]):
    """The runs with the last lines of all: what is too old for these is dropped."""

    def __init__(self, most_lines: int) -> None:
        self._most_lines = most_lines
        self._runs: list[tuple[int, Worker, int, int, Lines]] = []
        self._added = self._count = 0
        self.is_cut = False
        """Whether lines before these exist, which are not shown."""

    def add(self, run: Lines) -> None:
        self._added += 1
        heapq.heappush(self._runs, (run.at_ms, run.worker, run.first, self._added, run))
        self._count += _count(run)
        while self._count - _count(self._runs[0][-1]) >= self._most_lines:
            self._count -= _count(heapq.heappop(self._runs)[-1])
            self.is_cut = True

    def reaches(self, end_ms: int) -> bool:
        """Return whether lines up to this time are too old."""
        return self._count >= self._most_lines and end_ms < self._runs[0][0]

    def runs(self) -> list[Lines]:
        """Return these runs in no order."""
        return [run for *_, run in self._runs]


def _count(run: Numbered) -> int:
    return run.next - run.first


def in_order(runs: Iterable[WorkerRun]) -> list[WorkerRun]:
    """Sort runs by time, those of a worker by their lines: clocks of brokers may differ."""
    latest: dict[Worker, int] = {}
    timed = []
    for at_ms, worker, run in sorted(runs, key=lambda one: (one.worker, one.run.first)):
        latest[worker] = max(at_ms, latest.get(worker, 0))
        timed.append(WorkerRun(latest[worker], worker, run))
    return sorted(timed, key=lambda one: (one.at_ms, one.worker, one.run.first))
