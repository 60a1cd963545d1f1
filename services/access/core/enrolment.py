"""The outcome of each command about the identity of nodes."""

from __future__ import annotations

from services.access.core.outcomes import Denial, Grant, Outcome
from shared.contracts.access import PoolConfigured
from shared.contracts.base import Command
from shared.contracts.enrolment import (
    ApproveNode,
    CreateNodeToken,
    EnrollNode,
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
    RenewNodeCredential,
    RevokeNode,
    RevokeNodeToken,
)
from shared.contracts.node_registry import EnrolledNode, NodeRegistry

ENROLMENT = (
    CreateNodeToken,
    RevokeNodeToken,
    EnrollNode,
    ApproveNode,
    RevokeNode,
    RenewNodeCredential,
)
RENEWED_FOR_MS = 3_600_000
"""How long a renewed credential stays valid: the node may not have got the answer."""


def decide_enrolment(
    nodes: NodeRegistry,
    pools: dict[str, PoolConfigured],
    command: Command,
    now: int,
    credential_ms: int,
) -> Outcome:
    """Return the outcome; `credential_ms` is the life of a credential from `now`, in ms."""
    match command:
        case CreateNodeToken():
            return create_token(nodes, pools, command, now)
        case RevokeNodeToken():
            return revoke_token(nodes, command)
        case EnrollNode():
            return enroll(nodes, command, now, now + credential_ms)
        case ApproveNode():
            return approve(nodes, command)
        case RevokeNode():
            return revoke(nodes, command)
        case RenewNodeCredential():
            return renew(nodes, command, now, now + credential_ms)
        case _:
            raise TypeError(f"not a command about nodes: {command.TYPE}")


def create_token(
    nodes: NodeRegistry, pools: dict[str, PoolConfigured], command: CreateNodeToken, now: int
) -> Outcome:
    """A token id means one token for ever, as that of an API key does."""
    token_id, pool = command.token_id, pools.get(command.pool)
    if pool is None:
        detail = f"pool: {command.pool!r}: no such pool; configure it first"
        return Denial(token_id, "unknown_pool", detail)
    if "agent" not in pool.backends:
        allowed = ", ".join(pool.backends)
        detail = f"pool: {command.pool!r}: its backends are {allowed}; add the backend agent"
        return Denial(token_id, "backend_not_allowed", detail)
    if token_id in nodes.tokens:
        return Denial(token_id, "token_exists", f"token_id: {token_id!r}: exists; use another id")
    event = NodeTokenCreated(
        token_id=token_id,
        sha256=command.sha256,
        pool=command.pool,
        expires_at=now + command.ttl_s * 1000,
        max_uses=command.max_uses,
        approve=command.approve,
    )
    return Grant(token_id, event)


def revoke_token(nodes: NodeRegistry, command: RevokeNodeToken) -> Outcome:
    token_id, token = command.token_id, nodes.tokens.get(command.token_id)
    if token is None:
        return Denial(token_id, "unknown_token", f"token_id: {token_id!r}: no such token")
    return Grant(token_id, None if token.is_revoked else NodeTokenRevoked(token_id=token_id))


def enroll(nodes: NodeRegistry, command: EnrollNode, now: int, expires_at: int) -> Outcome:
    """A repeated enrolment changes nothing and uses no token: the node lost the answer."""
    node_id, old = command.node_id, nodes.nodes.get(command.node_id)
    if old is not None and command.credential_sha256 in old.credentials:
        return _deny_machine(old, command) or Grant(node_id, None)
    denial = _deny_token(nodes, command, now) or _deny_node(old, command)
    if denial is not None:
        return denial
    token = nodes.tokens[command.token_id].created
    event = NodeEnrolled(
        node_id=node_id,
        pool=token.pool,
        credential_sha256=command.credential_sha256,
        approved=token.approve,
        expires_at=expires_at,
        token_id=token.token_id,
        hardware=command.hardware,
    )
    return Grant(node_id, event)


def _deny_token(nodes: NodeRegistry, command: EnrollNode, now: int) -> Denial | None:
    node_id, token = command.node_id, nodes.tokens.get(command.token_id)
    if token is None:
        detail = f"token_id: {command.token_id!r}: no such token; create one"
        return Denial(node_id, "unknown_token", detail)
    detail = f"token_id: {command.token_id!r}: "
    match token.state(now):
        case "revoked":
            return Denial(node_id, "token_revoked", f"{detail}revoked; create another")
        case "expired":
            late_s = (now - token.created.expires_at) // 1000
            return Denial(
                node_id, "token_expired", f"{detail}expired {late_s} s ago; create another"
            )
        case "used_up":
            rule = f"used {token.uses} times; it allows no more"
            return Denial(node_id, "token_used_up", f"{detail}{rule}")
        case "valid":
            return None


def _deny_node(old: EnrolledNode | None, command: EnrollNode) -> Denial | None:
    if old is None:
        return None
    node_id = command.node_id
    if command.credential_sha256 in old.former:
        detail = f"node_id: {node_id!r}: this credential was revoked; make a new one"
        return Denial(node_id, "credential_revoked", detail)
    if not old.is_revoked:
        detail = f"node_id: {node_id!r}: enrolled with another credential; revoke it first"
        return Denial(node_id, "node_exists", detail)
    return None


def _deny_machine(old: EnrolledNode, command: EnrollNode) -> Denial | None:
    """A copied disk brings a credential along, but not the machine that it was made on."""
    if command.hardware in ("", old.hardware) or not old.hardware:
        return None
    detail = f"node_id: {old.node_id!r}: enrolled on another machine; revoke it and join anew"
    return Denial(old.node_id, "machine_changed", detail)


def approve(nodes: NodeRegistry, command: ApproveNode) -> Outcome:
    node = nodes.nodes.get(command.node_id)
    if node is None:
        return _unknown(command.node_id)
    if node.is_revoked:
        detail = f"node_id: {command.node_id!r}: revoked; it has to join anew"
        return Denial(command.node_id, "node_revoked", detail)
    return Grant(command.node_id, None if node.approved else NodeApproved(node_id=node.node_id))


def revoke(nodes: NodeRegistry, command: RevokeNode) -> Outcome:
    node = nodes.nodes.get(command.node_id)
    if node is None:
        return _unknown(command.node_id)
    event = NodeRevoked(node_id=node.node_id, reason=command.reason)
    return Grant(command.node_id, None if node.is_revoked else event)


def renew(nodes: NodeRegistry, command: RenewNodeCredential, now: int, expires_at: int) -> Outcome:
    """Only a credential that is valid now may be renewed; a repeated renewal changes nothing."""
    node = nodes.nodes.get(command.node_id)
    if node is None:
        return _unknown(command.node_id)
    until = node.credentials.get(command.presented_sha256, 0)
    if until <= now:
        detail = f"node_id: {command.node_id!r}: the credential is not valid any more"
        return Denial(command.node_id, "unknown_credential", detail)
    if command.credential_sha256 in node.credentials:
        return Grant(command.node_id, None)
    if command.credential_sha256 in node.former:
        detail = f"node_id: {command.node_id!r}: this credential was revoked; make a new one"
        return Denial(command.node_id, "credential_revoked", detail)
    event = NodeCredentialRenewed(
        node_id=node.node_id,
        credential_sha256=command.credential_sha256,
        expires_at=expires_at,
        previous_sha256=command.presented_sha256,
        previous_until=min(until, now + RENEWED_FOR_MS),
    )
    return Grant(command.node_id, event)


def _unknown(node_id: str) -> Denial:
    return Denial(node_id, "unknown_node", f"node_id: {node_id!r}: no such node has joined")
