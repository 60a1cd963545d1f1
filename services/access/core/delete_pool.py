"""The deletion of a pool: refused while a tenant, a key, a node or a join token names it.

Its jobs are not in this ledger: the gateway looks in the read models for those that have not ended,
and admission refuses what is submitted after the deletion.
"""

from __future__ import annotations

from collections.abc import Iterator

from services.access.core.outcomes import Denial, Grant, Outcome
from shared.contracts.pools import DeletePool, PoolDeleted
from shared.contracts.registry import AccessView


def delete_pool(view: AccessView, command: DeletePool, now: int) -> Outcome:
    name, existing = command.pool, view.pools.get(command.pool)
    if existing is None:
        return Denial(name, "unknown_pool", f"pool: {name!r}: no such pool")
    if not view.is_finished:
        detail = f"pool: {name!r}: can be deleted after `berth upgrade finish`"
        return Denial(name, "upgrade_not_finished", detail)
    if use := next(uses_of(view, name, now), None):
        return Denial(name, "pool_in_use", f"pool: {name!r}: {use}")
    return Grant(name, PoolDeleted(pool=name, partition=existing.partition))


def uses_of(view: AccessView, pool: str, now: int) -> Iterator[str]:
    """Yield what names the pool, with what to do about it."""
    for tenant in view.active_tenants:
        if view.default_pool(tenant) == pool:
            yield f"is the default pool of tenant {tenant}; `berth tenants set {tenant} --pool`"
        if pool in view.bounds_of(tenant).pools:
            yield f"is in the pools of tenant {tenant}; `berth tenants set {tenant} pools=...`"
    for key in view.keys.values():
        if pool in key.pools and key.key_id not in view.revoked:
            yield f"key {key.key_id} names it; `berth keys revoke {key.key_id}`"
    for node in view.enrolled.nodes.values():
        if node.pool == pool and not node.is_revoked:
            yield f"node {node.node_id} is enrolled in it; `berth nodes revoke {node.node_id}`"
    for token in view.enrolled.tokens.values():
        if token.created.pool == pool and token.state(now) == "valid":
            token_id = token.created.token_id
            yield f"join token {token_id} is valid; `berth nodes revoke-token {token_id}`"
