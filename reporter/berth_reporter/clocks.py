"""Moments of a training: by the host's clock, or by events in the stream of a GPU.

A GPU works behind the program that gives it work, so its times are read once it has got there.
"""

from __future__ import annotations

import time
from typing import Any, Protocol


class Clock(Protocol):
    """Marks moments, which can be compared once they are reached."""

    def mark(self) -> Any: ...
    def is_reached(self, moment: Any) -> bool: ...
    def between_s(self, first: Any, second: Any) -> float: ...


class HostClock:
    """Moments of the program itself."""

    def mark(self) -> float:
        return time.perf_counter()

    def is_reached(self, moment: float) -> bool:
        return True

    def between_s(self, first: float, second: float) -> float:
        return second - first


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


def clock_of(torch: Any, model: Any) -> Clock:
    """Return the clock of the device that holds the model's parameters."""
    parameter = next(iter(model.parameters()), None)
    on_gpu = parameter is not None and parameter.device.type == "cuda"
    return CudaClock(torch) if on_gpu else HostClock()
