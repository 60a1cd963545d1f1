"""The checkpoints of workers on their way to the executor: the newest of each, seldom."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from berth_agent.linux.clocks import boot_ms
from berth_agent.messages import Checkpoint
from berth_agent.telemetry_door import Written

EVERY_MS = 10_000
"""A worker's checkpoints are sent at most once in so long."""
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class Checkpoints:
    """The checkpoints not sent yet; a worker that reports many replaces its own one only."""

    def __init__(self) -> None:
        self._unsent: dict[str, Written] = {}
        self._sent_ms: dict[str, int] = {}

    def note(self, allocation_id: str, written: Written) -> None:
        """Keep the checkpoint until it is sent, or a newer one comes."""
        self._unsent[allocation_id] = written

    def due(self, most: int, start_ticks: Callable[[str], int]) -> tuple[Checkpoint, ...]:
        """Return the checkpoints that may be sent now.

        `start_ticks` returns the start of a worker's process, in clock ticks since the boot, or 0
        while it is not noted: its checkpoint waits until it is.
        """
        latest_ms = boot_ms() - EVERY_MS
        due: list[Checkpoint] = []
        for name, written in self._unsent.items():
            if len(due) == most:
                break
            if self._sent_ms.get(name, latest_ms) <= latest_ms and (ticks := start_ticks(name)) > 0:
                ran_ms = max(0, round(written.at_boot_ms - ticks * TICK_MS))
                due.append(Checkpoint(allocation_id=name, ran_ms=ran_ms, step=written.step))
        return tuple(due)

    def note_sent(self, checkpoints: tuple[Checkpoint, ...]) -> None:
        """Forget what was sent, but keep a later one of the same worker."""
        for checkpoint in checkpoints:
            name = checkpoint.allocation_id
            self._sent_ms[name] = boot_ms()
            if name in self._unsent and self._unsent[name].step == checkpoint.step:
                del self._unsent[name]

    def keep_only(self, held: Collection[str]) -> None:
        """Forget the workers that are gone."""
        for known in (self._unsent, self._sent_ms):
            for name in known.keys() - set(held):
                del known[name]
