"""Priority's decider: records changes of the queue, and ranks it as often as the pool is set to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.priority.core.caches.last_order import changes_since
from services.priority.core.changes import QueueChanges, add_input
from services.priority.core.drift import report_drift
from services.priority.core.evolve import evolve
from services.priority.core.learned.model import LearnedModels
from services.priority.core.policies.base_policies import order_survives_departures
from services.priority.core.ranking.rank_pool import rank
from services.priority.core.starts.start_estimates import estimate_starts, estimates_due
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import QueueRanked
from shared.contracts.reranking import QueueReranked
from shared.contracts.topics import CONSUMED_EVENTS
from shared.ledger.clock_steps import note_steps
from shared.ledger.decider import Decision, Fact, Input, Undecodable
from shared.ledger.restate import restate_settings, restate_tenants

HEAD_MS = 250
"""A changed queue is ranked sooner than the pool's `rank_ms` when the job that led it is gone."""
REFRESH_MS = 5000
"""Wall ms after which an unchanged queue is ranked again: placement ignores ranks older than 10 s.
With `rank_ms` 0 every change is ranked at once, and an order that holds is not repeated."""


class Priority:
    """Decides the order of one pool; see `Decider`. `models`: the learned policies, by name."""

    ledger = "priority"
    consumed_events = CONSUMED_EVENTS["priority"]

    def __init__(self, models: LearnedModels | None = None) -> None:
        self._models: LearnedModels = models or {}

    def initial(self, partition: int) -> PriorityState:
        return PriorityState(partition)

    def decide(self, state: PriorityState, inputs: Sequence[Input], now: int) -> Iterator[Decision]:
        yield from note_steps(inputs, state.pool, self.ledger, now)
        changes = QueueChanges()
        for item in inputs:
            message = item.message
            if item.source == "access":
                yield from restate_settings([item], PoolConfigured, state.partition, state.pool)
                yield from restate_tenants([item], state.noted_tenant)
            elif isinstance(message, Undecodable):
                yield item.decision(message.rejection())
            elif isinstance(message, Event):
                add_input(state, changes, item, message)
        if changes:
            yield Decision(changes.to_event(state.name))
        if rank_due(state, now):
            if publishes_predictions(state):
                yield from report_drift(state)
            yield from rank_and_estimate(state, self._models, now)

    def evolve(self, state: PriorityState, fact: Fact) -> None:
        evolve(state, fact)

    def next_wake(self, state: PriorityState) -> int | None:
        if not state.waiting or state.pool is None:
            return None
        pause = pause_ms(state, state.pool)
        return None if pause is None else state.ranked_at + pause


def rank_and_estimate(state: PriorityState, models: LearnedModels, now: int) -> Iterator[Decision]:
    """Yield the ranking, and from time to time when the jobs start in that order."""
    is_due = publishes_predictions(state) and estimates_due(
        len(state.waiting), state.ranked_at, now
    )
    for decision in rank(state, models, now):
        order = decision.event
        if not isinstance(order, QueueRanked):
            yield decision
            continue
        yield decision._replace(event=recorded(state, order))
        if is_due:
            yield from estimate_starts(state, order.ranked, now)


def recorded(state: PriorityState, order: QueueRanked) -> QueueRanked | QueueReranked:
    """Return the event that records a ranking: its changes, or all of it."""
    if state.pool is None or not state.pool.rank_changes:
        return order
    changes = changes_since(state.last_order, order) if state.last_order else None
    return changes or order.model_copy(update={"changes_follow": True})


def publishes_predictions(state: PriorityState) -> bool:
    return state.pool is not None and state.pool.publish_predictions


def pause_ms(state: PriorityState, pool: PoolConfigured) -> int | None:
    """Return the time to the next ranking; None while the last one holds until a change."""
    if not state.dirty:
        return None if pool.rank_ms == 0 and order_survives_departures(pool) else REFRESH_MS
    return pool.rank_ms if state.head in state.waiting else min(HEAD_MS, pool.rank_ms)


def rank_due(state: PriorityState, now: int) -> bool:
    if not state.waiting or state.pool is None:
        return False
    pause = pause_ms(state, state.pool)
    return pause is not None and now - state.ranked_at >= pause
