"""The outcome of each command about the identity of nodes."""

from __future__ import annotations

from itertools import islice, takewhile

from services.access.core.outcomes import Denial, Grant, Outcome
from shared.contracts.enrolment import (
    ApproveNode,
    CreateNodeToken,
    EnrollNode,
    ForgetNode,
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeForgotten,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
    RenewNodeCredential,
    RevokeNode,
    RevokeNodeToken,
)
from shared.contracts.node_registry import TOKENS_KEPT, EnrolledNode, NodeRegistry
from shared.contracts.pools import PoolConfigured

EnrolmentCommand = (
    CreateNodeToken
    | RevokeNodeToken
    | EnrollNode
    | ApproveNode
    | RevokeNode
    | ForgetNode
    | RenewNodeCredential
)
RESERVED = frozenset({"tokens"})
"""Names that no node gets: `GET /v1/nodes/tokens` lists the join tokens."""
FORGOTTEN_AFTER_MS = 30 * 86_400_000
"""An identity that ended is forgotten so long after its last credential would have expired."""
FORGOTTEN_AT_ONCE = 16
"""Most identities that one enrolment lets be forgotten, so that its answer is bounded."""
RENEWED_FOR_MS = 3_600_000
"""How long a renewed credential stays valid: the node may not have got the answer."""


def decide_enrolment(
    nodes: NodeRegistry,
    pools: dict[str, PoolConfigured],
    command: EnrolmentCommand,
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
        case ForgetNode():
            return forget(nodes, command, now)
        case RenewNodeCredential():
            return renew(nodes, command, now, now + credential_ms)


def create_token(
    nodes: NodeRegistry, pools: dict[str, PoolConfigured], command: CreateNodeToken, now: int
) -> Outcome:
    """Create a token; an id that was used before is refused, as that of an API key is."""
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
    if nodes.valid_tokens(now) >= TOKENS_KEPT - 1:
        detail = f"{TOKENS_KEPT - 1} tokens are valid; no more are allowed, so revoke some"
        return Denial(token_id, "too_many_tokens", detail)
    event = NodeTokenCreated(
        token_id=token_id,
        sha256=command.sha256,
        pool=command.pool,
        expires_at=now + command.ttl_s * 1000,
        max_uses=command.max_uses,
        approve=command.approve,
        replace=command.replace,
    )
    return Grant(token_id, event)


def revoke_token(nodes: NodeRegistry, command: RevokeNodeToken) -> Outcome:
    token_id, token = command.token_id, nodes.tokens.get(command.token_id)
    if token is None:
        return Denial(token_id, "unknown_token", f"token_id: {token_id!r}: no such token")
    return Grant(token_id, None if token.is_revoked else NodeTokenRevoked(token_id=token_id))


def enroll(nodes: NodeRegistry, command: EnrollNode, now: int, expires_at: int) -> Outcome:
    """Enrol a node; a repetition, as after a lost answer, changes nothing and uses no token."""
    node_id, old = command.node_id, nodes.nodes.get(command.node_id)
    if old is not None and old.credentials.get(command.credential_sha256, 0) > now:
        return _deny_machine(old, command.hardware) or Grant(node_id, None)
    denial = _deny_name(node_id) or _deny_token(nodes, command, now)
    if denial is not None:
        return denial
    token = nodes.tokens[command.token_id].created
    denial = _deny_node(old, token, command, now)
    if denial is not None:
        return denial
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


def long_ended(nodes: NodeRegistry, now: int) -> list[NodeForgotten]:
    """Return the end of identities that ended long ago, the oldest first.

    Each enrolment ends more of them than it adds, so that nodes which come and go under new names
    leave nothing behind. Their credentials expired, so they are refused as unknown ones are.
    """
    before = now - FORGOTTEN_AFTER_MS
    oldest = islice(nodes.nodes.values(), FORGOTTEN_AT_ONCE)
    ended = takewhile(lambda node: node.valid_until <= before, oldest)
    return [NodeForgotten(node_id=node.node_id) for node in ended]


def _deny_name(node_id: str) -> Denial | None:
    if node_id not in RESERVED:
        return None
    detail = f"node_id: {node_id!r}: a path of the API has this name; another is allowed"
    return Denial(node_id, "name_reserved", detail)


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


def _deny_node(
    old: EnrolledNode | None, token: NodeTokenCreated, command: EnrollNode, now: int
) -> Denial | None:
    """Refuse a name that another credential holds, unless its machine may replace it."""
    if old is None:
        return None
    node_id = command.node_id
    if command.credential_sha256 in old.former:
        detail = f"node_id: {node_id!r}: this credential was revoked; make a new one"
        return Denial(node_id, "credential_revoked", detail)
    is_same_machine = bool(command.hardware) and command.hardware == old.hardware
    if old.is_revoked or old.expires_at <= now or (token.replace and is_same_machine):
        return None
    rule = "revoke it first, or join from its machine with a token that may replace"
    detail = f"node_id: {node_id!r}: enrolled with another credential; {rule}"
    return Denial(node_id, "node_exists", detail)


def _deny_machine(node: EnrolledNode, hardware: str, former: tuple[str, ...] = ()) -> Denial | None:
    """Return the denial if the credential was made on another machine, as that of a copied disk."""
    if "" in (hardware, node.hardware) or node.hardware in (hardware, *former):
        return None
    detail = f"node_id: {node.node_id!r}: enrolled on another machine; revoke it and join anew"
    return Denial(node.node_id, "machine_changed", detail)


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


def forget(nodes: NodeRegistry, command: ForgetNode, now: int) -> Outcome:
    """Remove an identity that has ended; a node could still work with any other."""
    node = nodes.nodes.get(command.node_id)
    if node is None:
        return _unknown(command.node_id)
    state = node.state(now)
    if state in ("approved", "pending"):
        detail = f"node_id: {command.node_id!r}: its identity is {state}; revoke it first"
        return Denial(command.node_id, "identity_valid", detail)
    return Grant(command.node_id, NodeForgotten(node_id=node.node_id))


def renew(nodes: NodeRegistry, command: RenewNodeCredential, now: int, expires_at: int) -> Outcome:
    """Renew a credential that is valid now; a repeated renewal changes nothing.

    A node that enrolled with a machine names it each time: else a copied disk would renew for ever
    where no machine can be read.
    """
    node = nodes.nodes.get(command.node_id)
    if node is None:
        return _unknown(command.node_id)
    until = node.credentials.get(command.presented_sha256, 0)
    if until <= now:
        detail = f"node_id: {command.node_id!r}: the credential is not valid any more"
        return Denial(command.node_id, "unknown_credential", detail)
    if node.hardware and not command.hardware:
        rule = "the machine that enrolled is required; start the agent as root, or update it"
        detail = f"hardware: empty; node {command.node_id!r}: {rule}"
        return Denial(command.node_id, "machine_unknown", detail)
    denial = _deny_machine(node, command.hardware, command.former_hardware)
    if denial is not None:
        return denial
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
    return Denial(node_id, "unknown_node", f"node_id: {node_id!r}: no such node is enrolled")
