"""Short builders of queues and views for the tests of single modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from services.priority.core.queue_view import QueueView
from services.priority.core.state import Queue
from shared.contracts.ranking import QueueChanged, QueueEntry, Running
from shared.testing.decider import AT, fold, given
from tests.services.priority.core.lane import PRIORITY, pool


def entry(job: str, tenant: str = "red", at: int = AT, gpus: float = 1, **more: Any) -> QueueEntry:
    return QueueEntry(job_id=job, tenant=tenant, submitted_at=at, gpus=gpus, **more)


def holding(job: str, tenant: str = "red", gpus: float = 1, since: int = AT) -> Running:
    return Running(job_id=job, tenant=tenant, gpus=gpus, since=since)


def queue(*entries: QueueEntry, running: tuple[Running, ...] = (), **settings: Any) -> Queue:
    """Return a queue of these jobs; `settings` are of its pool."""
    changed = QueueChanged(pool="p", entered=entries, running=running)
    return given(PRIORITY, pool(**settings), changed)


def change(state: Queue, at: int = AT, **fields: Any) -> Queue:
    return fold(PRIORITY, state, [QueueChanged(pool="p", **fields)], at=at)


def columns(waiting: int, job_ids: str, **values: list[float]) -> QueueView:
    """Return a view of jobs with one letter each; the first `waiting` ones wait."""
    arrays = {name: np.array(column, np.float64) for name, column in values.items()}
    ids = np.array(list(job_ids), object)
    return QueueView.of_columns(waiting=waiting, rows=np.arange(len(ids)), job_ids=ids, **arrays)


def ids_at(view: QueueView, places: list[int]) -> str:
    return "".join(view.job_ids[places])
