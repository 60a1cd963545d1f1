"""Short builders of queues and views for the tests of single modules."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from services.priority.core.queue.queue_view import QueueView
from services.priority.core.state import PriorityState
from shared.contracts.ranking import (
    Finished,
    Progressed,
    QueueChanged,
    QueueEntry,
    Running,
    Started,
    Stopped,
)
from tests.harness.decider import AT, fold, given
from tests.services.priority.core.lane import PRIORITY, pool


def entry(job: str, tenant: str = "red", at: int = AT, gpus: float = 1, **more: Any) -> QueueEntry:
    return QueueEntry(job_id=job, tenant=tenant, submitted_at=at, gpus=gpus, **more)


def holding(job: str, tenant: str = "red", gpus: float = 1, since: int = AT) -> Running:
    return Running(job_id=job, tenant=tenant, gpus=gpus, since=since)


def queue(
    *entries: QueueEntry, running: tuple[Running, ...] = (), **settings: Any
) -> PriorityState:
    """Return a queue of these jobs; `settings` are of its pool."""
    changed = QueueChanged(pool="p", entered=entries, running=running)
    return given(PRIORITY, pool(**settings), changed)


def change(state: PriorityState, at: int = AT, **fields: Any) -> PriorityState:
    return fold(PRIORITY, state, [QueueChanged(pool="p", **fields)], at=at)


def columns(waiting: int, job_ids: str, **values: list[float]) -> QueueView:
    """Return a view of jobs with one letter each; the first `waiting` ones wait."""
    arrays = {name: np.array(column, np.float64) for name, column in values.items()}
    ids = np.array(list(job_ids), object)
    return view_of(waiting=waiting, rows=np.arange(len(ids)), job_ids=ids, **arrays)


def view_of(**columns: object) -> QueueView:
    """Return a view without a table: every column that is used has to be given."""
    view = QueueView.__new__(QueueView)
    vars(view).update(columns)
    return view


def ids_at(view: QueueView, places: list[int]) -> str:
    return "".join(view.job_ids[places])


def happen(chance: Random, state: PriorityState, names: list[str], now: int) -> None:
    """Let one thing happen to one of the jobs, and sometimes to the history of all."""
    name = chance.choice(names)
    match chance.randrange(8):
        case 0:
            change(state, at=now, running=(holding(name, since=now),))
        case 1:
            change(state, at=now, started=(Started(job_id=name, at=now),))
        case 2:
            kept = chance.choice([0, 3_000, 900_000])
            stop = Stopped(job_id=name, ran_ms=kept + 500, kept_ms=kept, restarts=1)
            change(state, at=now, stopped=(stop,), requeued=(name,))
        case 3:
            change(state, at=now, left=(name,))
            more: dict[str, Any] = {"walltime_s": 5_000.0} if chance.random() < 0.5 else {}
            change(state, at=now, entered=(entry(name, at=now, gpus=2, restart_s=30.0, **more),))
        case 4:
            ran_s = chance.choice([2.0, 700.0, 40_000.0])
            end = Finished(job_id=name, ran_s=ran_s, succeeded=True)
            change(state, at=now, finished=(end,))
        case 5 | 6:
            ends_at = now + chance.choice([500, 60_000, 5_000_000])
            change(state, at=now, progressed=(Progressed(job_id=name, ends_at=ends_at),))
