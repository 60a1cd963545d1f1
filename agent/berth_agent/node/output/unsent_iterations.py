"""Iterations of workers on their way to the executor: the newest of each process."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable

from berth_agent.core.iteration_rows import IterationRows
from berth_agent.messages import Iterations
from berth_agent.telemetry_receiver import MAX_PROCESSES, ProcessIterations

ITERATION_BYTES = 128 * 1024
"""Encoded parts of one message, and one part more."""

Process = tuple[str, int, int]
"""Allocation and rank of the worker, and the rank of its process."""


class UnsentIterations:
    """Iterations by process; those of the process that was sent longest ago are due first."""

    def __init__(self) -> None:
        self._rows: dict[Process, IterationRows] = {}

    def add(self, allocation_id: str, rank: int, fresh: ProcessIterations) -> None:
        """Keep what a worker reported, until it is sent."""
        known = {process for name, _, process in self._rows if name == allocation_id}
        for process, rows in fresh.items():
            if process in known or len(known) < MAX_PROCESSES:
                known.add(process)
                name = (allocation_id, rank, process)
                self._rows.setdefault(name, IterationRows()).extend(rows)

    def keep_only(self, held: Collection[str]) -> None:
        """Forget the workers that are gone."""
        for process in [process for process in self._rows if process[0] not in held]:
            del self._rows[process]

    def due(self, most: int) -> tuple[Iterations, ...]:
        """Return the messages that may be sent now, at most so many."""
        due: list[Iterations] = []
        size_bytes = 0
        for (allocation_id, rank, process), rows in self._rows.items():
            if len(due) == most or size_bytes > ITERATION_BYTES:
                break
            message = rows.message(allocation_id, rank, process)
            size_bytes += len(json.dumps(message.to_json()))
            due.append(message)
        return tuple(due)

    def note_sent(self, messages: Iterable[Iterations]) -> None:
        """Forget what was sent."""
        for message in messages:
            process = message.process
            assert process is not None, "of `due`, which names it"
            del self._rows[message.allocation_id, message.rank, process]
