"""A bound on the nodes that the reports of one tenant alone take out of use.

A job reports its own iterations, so a tenant can report healthy nodes as slow. Its job then leaves
them, which costs the tenant a stop. A cordon costs others, and fills the share of the pool that
mitigation may cordon. So of that share half, and one node at least, may rest on one tenant's
reports; beyond it a node is cordoned where something else has shown it to be slow, lately: what
another tenant's job has had there long ago says nothing about now.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.failslow.core.state import FailSlowState

CONFIRMS_S = 86_400.0
"""Cluster s after which a fault of another tenant's job confirms nothing, as for measurements."""


def may_cordon(
    state: FailSlowState, tenant: str, node_ids: Sequence[str], most: int, now_s: float
) -> bool:
    """Return whether a plan for a job of the tenant may cordon the nodes.

    `most` is how many nodes of the pool may be out of use.
    """
    alone = {node_id for node_id in node_ids if not is_confirmed(state, node_id, tenant, now_s)}
    return not alone or len(state.fleet.held_by(tenant) | alone) <= max(1, most // 2)


def is_confirmed(state: FailSlowState, node_id: str, tenant: str, now_s: float) -> bool:
    """Return whether measurements, its GPUs or a job of another tenant show the node as slow."""
    if state.gpu_problems.of(node_id) or state.witnesses.agree([node_id]):
        return True
    health = state.mitigation.health.get(node_id)
    recent = (
        state.faults.get(fault_id)
        for fault_id, own in (health.added.items() if health else ())
        if now_s - own.at_s <= CONFIRMS_S
    )
    return any(
        fault.tenant != tenant and fault.status not in ("dismissed", "false_alarm")
        for fault in recent
        if fault is not None
    )
