"""Measures the node now and then in a thread of its own, as evidence where it is slow.

GPUs are read while workers run, as their clocks matter then. Processors are probed while none runs:
a probe beside a worker would slow it down, and would measure that worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from berth_agent.linux.nvml import Nvml
from berth_agent.messages import GpuReading, Measurements
from berth_agent.node.system import probe

PROBED_EVERY = 10
"""Measurements of which one probes the processors."""


class Measuring:
    """The newest measurement is kept until it is taken.

    `note` takes each reading of the GPUs, and returns it with what is remembered of them.
    """

    def __init__(
        self,
        every_s: float,
        is_idle: Callable[[], bool],
        nvml: Nvml | None = None,
        note: Callable[[Sequence[GpuReading]], tuple[GpuReading, ...]] = tuple,
    ) -> None:
        self._every_s = every_s
        self._is_idle = is_idle
        self._nvml = nvml
        self._note = note
        self._since_probe = 0
        self._newest: Measurements | None = None

    def start(self, stopping: threading.Event) -> None:
        """Measure until the event is set; a setting of 0 s measures nothing."""
        if self._every_s > 0:
            arguments = (stopping,)
            threading.Thread(target=self._run, args=arguments, daemon=True, name="measure").start()

    def take(self) -> Measurements | None:
        """Return the newest measurement that was not taken yet."""
        newest, self._newest = self._newest, None
        return newest

    def measure(self) -> None:
        """Read the GPUs, and probe the processors where that is due and no worker runs."""
        self._nvml = self._nvml or Nvml()
        gpus = self._note(self._nvml.readings())
        self._since_probe += 1
        if self._since_probe >= PROBED_EVERY and self._is_idle():
            self._since_probe = 0
            compute_s, copy_s = probe.compute_s(), probe.copy_s()
            # A worker that came meanwhile took a part of the time.
            if self._is_idle():
                self._newest = Measurements(compute_s=compute_s, copy_s=copy_s, gpus=gpus)
                return
        if gpus:
            self._newest = Measurements(gpus=gpus)

    def _run(self, stopping: threading.Event) -> None:
        # At once: a node whose GPUs are not those that it declares is to say so before it works.
        while not stopping.is_set():
            self.measure()
            stopping.wait(self._every_s)
