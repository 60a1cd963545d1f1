"""Folds each event of priority's own ledger into the state."""

from __future__ import annotations

from services.priority.core.degradation import degraded_key
from services.priority.core.folding import apply_changes
from services.priority.core.state import Queue
from shared.contracts.access import PoolConfigured
from shared.contracts.bookkeeping import TenantNoted
from shared.contracts.ranking import (
    PolicyDegraded,
    PolicyRestored,
    QueueChanged,
    QueueRanked,
    ShadowRanked,
)
from shared.contracts.rejected import InputQuarantined, InputRejected
from shared.ledger.decider import Fact


def evolve(state: Queue, fact: Fact) -> None:
    """Fold one event; raises on a type that priority does not write."""
    match fact.event:
        case QueueChanged() as event:
            apply_changes(state, event, fact.at)
        case QueueRanked() as event:
            apply_ranking(state, event, fact.at)
        case ShadowRanked():
            state.shadowed_at = fact.at
        case PolicyDegraded(learned=name, shadow=shadow, detail=detail):
            state.degraded[degraded_key(name, shadow)] = detail
        case PolicyRestored(learned=name, shadow=shadow):
            state.degraded.pop(degraded_key(name, shadow), None)
        case PoolConfigured() as pool:
            configure(state, pool)
        case TenantNoted(tenant=tenant, weight=weight):
            state.weights[tenant] = weight
            state.dirty = True
        case InputRejected() | InputQuarantined():
            pass
        case event:
            raise TypeError(f"event of an unknown type in the priority ledger: {event.TYPE}")


def apply_ranking(state: Queue, event: QueueRanked, at: int) -> None:
    state.ranked_at = at
    if event.context:
        state.context, state.context_at = event.context, at
    state.head = event.ranked[0].job_id if event.ranked else ""
    state.dirty = False


def configure(state: Queue, pool: PoolConfigured) -> None:
    """Take new settings; a policy that they do not name is not degraded."""
    state.pool = pool
    state.dirty = True
    named = {degraded_key(name, shadow=True) for name in pool.shadows} | {pool.learned}
    state.degraded = {name: detail for name, detail in state.degraded.items() if name in named}
