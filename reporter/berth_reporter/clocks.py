"""Moments of a training: by the host's clock, or by events in the stream of a GPU.

A GPU works behind the program that gives it work, so its times are read once it has got there.
"""

from __future__ import annotations

import time
from typing import Any, Optional, Protocol

from berth_reporter.run_delay import RunDelay


class Clock(Protocol):
    """Marks moments, which can be compared once they are reached."""

    def mark(self) -> Any: ...
    def is_reached(self, moment: Any) -> bool: ...
    def between_s(self, first: Any, second: Any) -> float: ...
    def delayed_s(self, first: Any, second: Any) -> float | None: ...


HostMoment = tuple[float, Optional[float]]
"""s of the clock, and s of waiting for a processor so far."""


class HostClock:
    """Moments of the thread that makes it, each with how long it has waited for a processor."""

    def __init__(self, delay: RunDelay | None = None) -> None:
        self._delay = delay or RunDelay()

    def mark(self) -> HostMoment:
        return time.perf_counter(), self._delay.read_s()

    def is_reached(self, moment: HostMoment) -> bool:
        return True

    def between_s(self, first: HostMoment, second: HostMoment) -> float:
        return second[0] - first[0]

    def delayed_s(self, first: HostMoment, second: HostMoment) -> float | None:
        """Return the s in between in which the thread waited for a processor; None if unknown."""
        if first[1] is None or second[1] is None:
            return None
        return min(max(second[1] - first[1], 0.0), self.between_s(first, second))


class CudaClock:
    """Moments of the current stream of the current GPU; `torch` is the module."""

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda

    def mark(self) -> Any:
        moment = self._cuda.Event(enable_timing=True)
        moment.record()
        return moment

    def is_reached(self, moment: Any) -> bool:
        return bool(moment.query())

    def between_s(self, first: Any, second: Any) -> float:
        return float(first.elapsed_time(second)) / 1000

    def delayed_s(self, first: Any, second: Any) -> None:
        """Return None: the work that a GPU has left may hide that its program waits."""
        return None


def clock_of(torch: Any, model: Any) -> Clock:
    """Return the clock of the device that holds the model's parameters."""
    parameter = next(iter(model.parameters()), None)
    on_gpu = parameter is not None and parameter.device.type == "cuda"
    return CudaClock(torch) if on_gpu else HostClock()
