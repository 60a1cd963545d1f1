"""Folds the events of the pool: its settings, its nodes and its tenants' quotas."""

from __future__ import annotations

from services.admission.core import waiting
from services.admission.core.demand import node_kind_of
from services.admission.core.state import AdmissionState, Owner
from shared.contracts.admission import QuotaChanged
from shared.contracts.bookkeeping import CapacityNoted, TenantNoted, UserNoted
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.ledger.decider import Fact

NODE_SETTLE_MS = 5_000
"""Nodes of a starting or restarting executor join one after another: for this long after the last
change of capacity, in wall ms, a gang that does not fit is deferred instead of rejected."""


def configure(state: AdmissionState, event: PoolConfigured, fact: Fact) -> None:
    state.pool, state.deleted = event, None
    waiting.requeue_by_quota(state, waiting.waiting_tenants(state))


def delete(state: AdmissionState, event: PoolDeleted, fact: Fact) -> None:
    state.deleted = event


def change_quota(state: AdmissionState, event: QuotaChanged, fact: Fact) -> None:
    state.quotas[event.tenant] = event
    waiting.requeue_by_quota(state, [event.tenant])


def note_tenant(state: AdmissionState, event: TenantNoted, fact: Fact) -> None:
    state.tenants[event.tenant] = event


def note_user(state: AdmissionState, event: UserNoted, fact: Fact) -> None:
    users = state.users.setdefault(event.tenant, {})
    if event.bounds is not None:
        users[event.user] = event.bounds
    else:
        users.pop(event.user, None)
    waiting.requeue_by_user(state, Owner(event.tenant, event.user))


def change_nodes(state: AdmissionState, event: CapacityNoted, fact: Fact) -> None:
    for node_id in event.left:
        remove_node(state, node_id)
    for node in event.joined:
        remove_node(state, node.node_id)
        state.nodes[node.node_id] = node
        node_kind = node_kind_of(node)
        state.node_kinds[node_kind] = state.node_kinds.get(node_kind, 0) + 1
    state.nodes_settled_at = fact.at + NODE_SETTLE_MS
    waiting.requeue_by_nodes(state)


def remove_node(state: AdmissionState, node_id: str) -> None:
    node = state.nodes.pop(node_id, None)
    if node is None:
        return
    node_kind = node_kind_of(node)
    state.node_kinds[node_kind] -= 1
    if not state.node_kinds[node_kind]:
        del state.node_kinds[node_kind]
