"""Reports of workers on their way to the executor: the newest of each kind, seldom."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from berth_agent.core.progress_meter import MeasuredProgress
from berth_agent.linux.clocks import boot_ms
from berth_agent.messages import Checkpoint, Progress
from berth_agent.telemetry_receiver import WrittenCheckpoint

CHECKPOINTS_MS = 10_000
PROGRESS_MS = 20_000
"""Those of a worker are sent at most once in so long."""


class Noted(Protocol):
    """A report of a worker, and when the node heard of it."""

    @property
    def step(self) -> int: ...
    @property
    def at_boot_ms(self) -> int: ...


class Sent(Protocol):
    """The message of one worker."""

    @property
    def allocation_id(self) -> str: ...
    @property
    def step(self) -> int: ...


N = TypeVar("N", bound=Noted)
S = TypeVar("S", bound=Sent)


class NewestReports(Generic[N, S]):
    """The reports not sent yet; a worker that makes many replaces its own one only."""

    def __init__(self, every_ms: int, message: Callable[[str, int, N], S]) -> None:
        """`message` makes the message of a worker, given its name and the ms it had run."""
        self._every_ms = every_ms
        self._message = message
        self._unsent: dict[str, N] = {}
        self._sent_ms: dict[str, int] = {}

    def note(self, allocation_id: str, noted: N) -> None:
        """Keep the report until it is sent, or a newer one comes."""
        self._unsent[allocation_id] = noted

    def due(self, most: int, began_ms: Callable[[str], int]) -> tuple[S, ...]:
        """Return the reports that may be sent now.

        `began_ms` returns when a worker's program began, in ms since the boot, or 0 while it is
        not noted: its report waits until it is.
        """
        latest_ms = boot_ms() - self._every_ms
        due: list[S] = []
        for name, noted in self._unsent.items():
            if len(due) == most:
                break
            if self._sent_ms.get(name, latest_ms) <= latest_ms and (began := began_ms(name)) > 0:
                ran_ms = max(0, round(noted.at_boot_ms - began))
                due.append(self._message(name, ran_ms, noted))
        return tuple(due)

    def note_sent(self, messages: tuple[S, ...]) -> None:
        """Forget what was sent, but keep a later one of the same worker."""
        for message in messages:
            name = message.allocation_id
            self._sent_ms[name] = boot_ms()
            if name in self._unsent and self._unsent[name].step == message.step:
                del self._unsent[name]

    def keep_only(self, held: Collection[str]) -> None:
        """Forget the workers that are gone."""
        for known in (self._unsent, self._sent_ms):
            for name in known.keys() - set(held):
                del known[name]


def checkpoints() -> NewestReports[WrittenCheckpoint, Checkpoint]:
    """Return the checkpoints of workers, none yet."""
    return NewestReports(
        CHECKPOINTS_MS,
        lambda name, ran_ms, written: Checkpoint(
            allocation_id=name, ran_ms=ran_ms, step=written.step
        ),
    )


def progress() -> NewestReports[MeasuredProgress, Progress]:
    """Return the progress of workers, none yet."""
    return NewestReports(
        PROGRESS_MS,
        lambda name, ran_ms, measured: Progress(
            allocation_id=name,
            ran_ms=ran_ms,
            step=measured.step,
            steps_total=measured.steps_total,
            iteration_s=measured.iteration_s,
        ),
    )
