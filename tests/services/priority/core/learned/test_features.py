"""Cached features equal those computed anew."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from services.priority.core.caches.feature_cache import STALE
from services.priority.core.decide import Priority
from services.priority.core.learned.features import compute_features
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import (
    Finished,
    NodeGpus,
    QueueChanged,
    QueueEntry,
    Running,
    Started,
    Stopped,
)
from shared.ledger.decider import Fact

STEPS = 250


def a_day(random: Random) -> Iterator[Event]:
    """Jobs of one pool come, run, are stopped and end; some run without an entry."""
    waiting: list[str] = []
    running: list[str] = []
    yield QueueChanged(pool="p", nodes=(NodeGpus(node_id="a", gpus=8),))
    for step in range(STEPS):
        name = f"j{step}"
        match random.randrange(7):
            case 0 | 1:
                waiting.append(name)
                yield QueueChanged(pool="p", entered=(entry(name, step, random),))
            case 2 if waiting or random.random() < 0.2:
                name = waiting.pop(0) if waiting else name
                running.append(name)
                holds = Running(job_id=name, tenant="t", gpus=2, since=step * 1000)
                yield QueueChanged(pool="p", running=(holds,))
            case 3 if running:
                started = Started(job_id=random.choice(running), at=step * 1000)
                yield QueueChanged(pool="p", started=(started,))
            case 4 if running:
                name = running.pop()
                waiting.append(name)
                kept = random.randrange(10**6)
                stopped = Stopped(job_id=name, ran_ms=kept, kept_ms=kept, restarts=step)
                yield QueueChanged(pool="p", stopped=(stopped,), requeued=(name,))
            case 5 if running:
                name = running.pop(0)
                ran = Finished(job_id=name, ran_s=random.lognormvariate(5, 2))
                yield QueueChanged(pool="p", finished=(ran,), left=(name,))
            case 6 if step % 5 == 0:
                node = NodeGpus(node_id="b", gpus=random.randrange(9))
                yield QueueChanged(pool="p", nodes=(node,))
            case _:
                yield QueueChanged(pool="p")


def entry(name: str, step: int, random: Random) -> QueueEntry:
    return QueueEntry(
        job_id=name,
        tenant="t",
        user=f"u{random.randrange(3)}",
        name="train",
        gpus=2.0 ** (step % 4),
        workers=1,
        submitted_at=step * 1000,
        walltime_s=random.choice([None, 60.0, 1e5]),
    )


@pytest.mark.parametrize("by_history", [True, False])
def test_cached_features_are_those_of_the_moment(by_history: bool) -> None:
    random = Random(4)
    decider = Priority()
    queue = decider.initial(0)
    pool = PoolConfigured(partition=0, pool="p", learned="berth")
    decider.evolve(queue, Fact(pool, "priority", 0, 1, 0, 0))
    kept = 0
    for step, event in enumerate(a_day(random)):
        decider.evolve(queue, Fact(event, "priority", 0, 1, 0, step * 1000))
        now = step * 1000 + random.randrange(1000)
        rows = queue.view(now).rows
        marks = queue.table.feature_cache.marks
        kept += int((marks[rows[rows < len(marks)]] != STALE).sum())
        columns, context = compute_features(queue.view(now), by_history)
        expected, expected_context = compute_features(fresh(queue).view(now), by_history)
        np.testing.assert_array_equal(columns, expected)
        np.testing.assert_array_equal(context, expected_context)
    assert kept > STEPS


def fresh(queue: PriorityState) -> PriorityState:
    """Return the same state with an empty cache."""
    copy: PriorityState = pickle.loads(pickle.dumps(queue))
    assert len(copy.table.feature_cache.marks) == 0
    return copy
