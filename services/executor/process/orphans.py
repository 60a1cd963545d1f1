"""After a crash: whatever an earlier executor of this name left running is ended."""

from __future__ import annotations

import time

from services.executor.core.effects import WorkerEnded
from services.executor.process.group import kill_each, leader_is, left_behind
from services.executor.process.journal import Journal, JournalEntry

PATIENCE_S = 10.0
PAUSE_S = 0.02


class OrphanAlive(RuntimeError):
    """A worker of an earlier executor does not die; its GPUs cannot be given to others."""


def reap(journal: Journal) -> dict[str, WorkerEnded]:
    """Kill them all, then tell the ends that are known. Blocks; nothing else runs yet."""
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
    while pids := _found(entry):
        if time.monotonic() > deadline:
            raise OrphanAlive(f"{entry.allocation_id}: {pids}")
        kill_each(pids)
        time.sleep(PAUSE_S)


def _found(entry: JournalEntry) -> list[int]:
    """A number may have a new owner: the group counts only while its leader is the same."""
    same = bool(entry.pid) and leader_is(entry.pid, entry.started_ticks)
    return left_behind(entry.token, entry.pid if same else None)
