"""Folds each event of priority's own ledger into the state."""

from __future__ import annotations

from services.priority.core.caches.last_order import order_of
from services.priority.core.folding import apply_changes
from services.priority.core.ranking.degradation import degraded_key
from services.priority.core.state import PriorityState
from shared.contracts.base import Event
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.clocks import ClockStepped
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import (
    IntervalsDrifted,
    IntervalsRecovered,
    JobStartEstimated,
    PolicyDegraded,
    PolicyRestored,
    QueueChanged,
    QueueRanked,
    ShadowRanked,
)
from shared.contracts.reranking import QueueReranked
from shared.ledger.decider import Fact
from shared.ledger.folds import INPUT_FOLDS, EventFold, folding, note_clock_step


def apply_ranking(state: PriorityState, event: QueueRanked, fact: Fact) -> None:
    state.last_order = order_of(event) if event.changes_follow else None
    end_ranking(state, event.ranked[0].job_id if event.ranked else "", event.context, fact.at)


def apply_reranking(state: PriorityState, event: QueueReranked, fact: Fact) -> None:
    assert state.last_order is not None, "changes without the order that they change"
    state.last_order.apply(event)
    end_ranking(state, next(iter(state.last_order.waiting), ""), event.context, fact.at)


def end_ranking(state: PriorityState, head: str, context: tuple[float, ...], at: int) -> None:
    state.head, state.ranked_at, state.dirty = head, at, False
    if context:
        state.context, state.context_at = context, at


def note_shadow(state: PriorityState, event: ShadowRanked, fact: Fact) -> None:
    state.shadowed_at = fact.at


def degrade_policy(state: PriorityState, event: PolicyDegraded, fact: Fact) -> None:
    state.degraded[degraded_key(event.learned, event.shadow)] = event.detail


def restore_policy(state: PriorityState, event: PolicyRestored, fact: Fact) -> None:
    state.degraded.pop(degraded_key(event.learned, event.shadow), None)


def note_estimate(state: PriorityState, event: JobStartEstimated, fact: Fact) -> None:
    if event.job_id in state.jobs:
        state.starts.note(event, fact.at, state.time_scale)


def note_drift(state: PriorityState, event: IntervalsDrifted, fact: Fact) -> None:
    state.coverage.drifted = True


def note_recovery(state: PriorityState, event: IntervalsRecovered, fact: Fact) -> None:
    state.coverage.drifted = False


def configure(state: PriorityState, event: PoolConfigured, fact: Fact) -> None:
    """Take new settings: the next ranking is recorded in full; a policy that they do not name is
    not degraded.
    """
    state.pool = event
    state.dirty = True
    state.last_order = None
    named = {degraded_key(name, shadow=True) for name in event.shadows} | {event.learned}
    state.degraded = {name: detail for name, detail in state.degraded.items() if name in named}


def weigh_tenant(state: PriorityState, event: TenantNoted, fact: Fact) -> None:
    state.weights[event.tenant] = event.weight
    state.dirty = True


FOLDS: dict[type[Event], EventFold[PriorityState]] = {
    QueueChanged: apply_changes,
    QueueRanked: apply_ranking,
    QueueReranked: apply_reranking,
    ShadowRanked: note_shadow,
    PolicyDegraded: degrade_policy,
    PolicyRestored: restore_policy,
    JobStartEstimated: note_estimate,
    IntervalsDrifted: note_drift,
    IntervalsRecovered: note_recovery,
    PoolConfigured: configure,
    TenantNoted: weigh_tenant,
    ClockStepped: note_clock_step,
    **INPUT_FOLDS,
}
"""Every event type of the priority ledger, and its fold."""

evolve = folding("priority", FOLDS)
