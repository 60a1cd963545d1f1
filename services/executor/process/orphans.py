"""After a crash: ends the workers that an earlier executor of this name left running."""

from __future__ import annotations

import time

from services.executor.core.effects import WorkerEnded
from services.executor.process.group import kill_each, leader_is, left_behind
from services.executor.process.journal import Journal, JournalEntry

PATIENCE_S = 10.0
PAUSE_S = 0.02


class OrphanAlive(RuntimeError):
    """A worker of an earlier executor cannot be killed; its GPUs cannot be reused."""


def reap(journal: Journal) -> dict[str, WorkerEnded]:
    """Kill all of them and return the known ends. Blocks; nothing else runs yet."""
    ends: dict[str, WorkerEnded] = {}
    for entry in journal.entries:
        _end(entry)
        if entry.state == "ended":
            ends[entry.allocation_id] = WorkerEnded(
                entry.allocation_id, entry.exit_code, entry.ran_ms
            )
        else:
            journal.forget(entry.allocation_id)
    return ends


def _end(entry: JournalEntry) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while pids := _remaining(entry):
        if time.monotonic() > deadline:
            raise OrphanAlive(f"{entry.allocation_id}: {pids}")
        kill_each(pids)
        time.sleep(PAUSE_S)


def _remaining(entry: JournalEntry) -> list[int]:
    """Return the living processes; numbers are reused, so a group counts only with its leader."""
    same = bool(entry.pid) and leader_is(entry.pid, entry.started_ticks)
    return left_behind(entry.token, entry.pid if same else None)
