"""Wakes the agent's main loop: steps by a FIFO, their ends by pidfds, signals, commands."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterable

from berth_agent.node.files.allocation import AllocationFolder

TICK_MS = 1000


class Wakeup:
    """Waits at most a tick: nothing depends on being woken."""

    def __init__(self, fifo: str) -> None:
        """Open the FIFO for both, so that it stays open without writers. Raises OSError."""
        if not os.path.exists(fifo):
            os.mkfifo(fifo, mode=0o600)
        self._fifo = os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._signals, writer = os.pipe()
        for descriptor in (self._signals, writer):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._steps: dict[tuple[int, int], int] = {}

    def wait(self, allocations: Iterable[AllocationFolder], tick_ms: int = TICK_MS) -> None:
        """Return when something happened, or a tick has passed."""
        self._watch(allocations)
        poll = select.poll()
        for descriptor in (self._fifo, self._signals, *self._steps.values()):
            poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(tick_ms)}
        for descriptor in (self._fifo, self._signals):
            if descriptor in ready:
                os.read(descriptor, 65536)
        for step, descriptor in list(self._steps.items()):
            if descriptor in ready:
                os.close(self._steps.pop(step))

    def wake(self) -> None:
        """Let `wait` return; any thread may call it."""
        try:
            os.write(self._fifo, b"w")
        except BlockingIOError:
            return

    def _watch(self, allocations: Iterable[AllocationFolder]) -> None:
        """Open pidfds of living steps, and close those of dropped ones."""
        living: set[tuple[int, int]] = set()
        for allocation in allocations:
            step = (int(allocation.state.get("pid", 0)), int(allocation.state.get("ticks", 0)))
            if allocation.is_dead or not step[0] or not allocation.is_step_alive():
                continue
            living.add(step)
            if step not in self._steps:
                try:
                    self._steps[step] = os.pidfd_open(step[0])
                except ProcessLookupError:
                    continue
        for step in self._steps.keys() - living:
            os.close(self._steps.pop(step))
