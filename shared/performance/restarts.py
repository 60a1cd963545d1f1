"""Seconds without progress after a job has started, changed its size, or moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartCosts:
    """Seconds of a restart: a constant part, and one per GPU of the gang."""

    constant_s: float
    per_gpu_s: float = 0.0

    def seconds(self, gpus: int) -> float:
        return self.constant_s + self.per_gpu_s * gpus


FREE = RestartCosts(0.0)
"""The simulations of Gavel (OSDI'20) take no time for a restart."""
POLLUX = RestartCosts(30.0)
"""The simulations of Pollux (OSDI'21), for each job and size."""
SIA_S = {
    "imagenet": 250.0,
    "bert": 120.0,
    "yolov3": 45.0,
    "cifar10": 30.0,
    "deepspeech2": 25.0,
    "ncf": 30.0,
}
"""The simulations of Sia (SOSP'23), by application."""
