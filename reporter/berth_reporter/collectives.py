"""Own work and waiting of a training that calls `torch.distributed` in Python: pipelines, FSDP.

The calls of the present iteration are measured, and the `wait()` of those that were begun before.
They take as long as other ranks make them wait and the transfer lasts; the rest of the iteration is
the rank's own work. PyTorch is imported when the first of these objects is made.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from berth_reporter.clocks import Clock, CudaClock, HostClock
from berth_reporter.iteration import Iteration
from berth_reporter.reporter import TRAIN, Reporter, default_reporter
from berth_reporter.unread import MarkedIteration, Moment, UnreadIterations

BETWEEN_TWO = ("send", "recv", "isend", "irecv", "batch_isend_irecv")
OF_ALL = (
    "all_reduce",
    "broadcast",
    "all_gather",
    "all_gather_into_tensor",
    "_all_gather_base",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "_reduce_scatter_base",
    "all_to_all",
    "all_to_all_single",
    "barrier",
)
"""Functions of `torch.distributed`; those that a version lacks are left out."""

Span = tuple[Moment, Moment]


class CollectiveIteration(MarkedIteration):
    """An iteration with the calls that were measured in it."""

    __slots__ = ("spans",)

    def __init__(
        self, step: int, steps_total: int | None, measured: Iteration, begin: Moment
    ) -> None:
        super().__init__(step, steps_total, measured, begin)
        self.spans: list[tuple[str, Span]] = []
        """Phase of each call, with its begin and end."""


class Waited:
    """A call that was begun without waiting; it is waited for through this object."""

    def __init__(self, work: Any, wait: Callable[..., Any]) -> None:
        self._work = work
        self.wait = wait

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


class CollectiveTimes:
    """Reports the iterations of one process; `close` gives `torch.distributed` back as it was.

    On a GPU (`on_gpu`) calls are measured in the stream that is current at the call. What a
    framework runs on streams of its own, as FSDP does there, is not seen: set `own_s` instead.
    """

    def __init__(
        self, reporter: Reporter | None = None, on_gpu: bool = False, clock: Clock | None = None
    ) -> None:
        self._dist = importlib.import_module("torch.distributed")
        self._reporter = reporter or default_reporter()
        self._clock = clock or _clock(on_gpu)
        self._current: CollectiveIteration | None = None
        self._unread = UnreadIterations(self._clock, self._reporter, self._report)
        self._depth = 0
        self._kept: dict[str, Any] = {}
        for names, phase in ((BETWEEN_TWO, "comm.p2p"), (OF_ALL, "comm.all")):
            for name in names:
                if (function := getattr(self._dist, name, None)) is not None:
                    self._kept[name] = function
                    setattr(self._dist, name, self._measured(function, phase))

    def close(self) -> None:
        """Give back the functions."""
        for name, function in self._kept.items():
            setattr(self._dist, name, function)
        self._kept = {}

    @contextmanager
    def iteration(
        self,
        step: int,
        samples: int | None = None,
        steps_total: int | None = None,
        tokens: int | None = None,
        kind: str = TRAIN,
    ) -> Iterator[Iteration]:
        """Measure and report the iteration in the body, unless the body raises."""
        measured = Iteration(samples, tokens, kind)
        current = self._current = CollectiveIteration(
            step, steps_total, measured, self._clock.mark()
        )
        try:
            yield measured
        finally:
            self._current = None
        current.end = self._clock.mark()
        self._unread.add(current)

    def flush(self) -> None:
        """Report the iterations that the device has reached, oldest first."""
        self._unread.flush()

    def _report(self, ended: CollectiveIteration) -> None:
        between_s, measured = self._clock.between_s, ended.measured
        whole_s, waited_s = between_s(ended.begin, ended.end), 0.0
        for phase, span in ended.spans:
            measured.add(phase, between_s(*span))
            waited_s += between_s(*span)
        measured.own_s, measured.wait_s = max(whole_s - waited_s, 0.0), waited_s
        self._reporter.send(ended.step, whole_s, measured, ended.steps_total)

    def _measured(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        """Return the function with its time noted, also that of waiting for its result."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            with self._span(phase):
                result = function(*arguments, **named)
            if isinstance(result, list):
                return [self._waited(work, phase) for work in result]
            return self._waited(result, phase)

        return call

    def _waited(self, work: Any, phase: str) -> Any:
        if not hasattr(work, "wait"):
            return work
        return Waited(work, self._measured(work.wait, phase))

    @contextmanager
    def _span(self, phase: str) -> Iterator[None]:
        """Note the time of the body once, where one call makes others."""
        current, self._depth = self._current, self._depth + 1
        begin = self._clock.mark() if current is not None and self._depth == 1 else None
        try:
            yield
        finally:
            self._depth -= 1
            if current is not None and begin is not None:
                current.spans.append((phase, (begin, self._clock.mark())))


def _clock(on_gpu: bool) -> Clock:
    return CudaClock(importlib.import_module("torch")) if on_gpu else HostClock()
