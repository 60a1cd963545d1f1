"""The nodes of the access ledger: join tokens, credentials, and what each of them permits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from shared.contracts.base import Event
from shared.contracts.enrolment import (
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeForgotten,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
)
from shared.contracts.keys import hash_secret, parse_key, verify_secret

JOIN_AGAIN = "run `berth-agent join --again` with a new token, and restart the agent"
TOKENS_KEPT = 1000
"""Join tokens that are known. Access lets fewer be valid at a time, so that ended ones go first."""
FORMER_KEPT = 16
"""Secrets of a node that are known as former ones."""
NO_HASH = "0" * 64
"""The hash of no secret: an unknown node is refused as slowly as a wrong secret."""

TokenState = Literal["valid", "expired", "used_up", "revoked"]
IdentityState = Literal["pending", "approved", "revoked", "expired"]


class JoinToken(NamedTuple):
    """A join token and the number of nodes that used it."""

    created: NodeTokenCreated
    uses: int = 0
    is_revoked: bool = False

    @property
    def is_used_up(self) -> bool:
        return self.created.max_uses is not None and self.uses >= self.created.max_uses

    def state(self, now: int) -> TokenState:
        """Return whether a node may join with it at that time, in ms."""
        if self.is_revoked:
            return "revoked"
        if self.created.expires_at <= now:
            return "expired"
        return "used_up" if self.is_used_up else "valid"


@dataclass(slots=True)
class EnrolledNode:
    """A node that enrolled; `credentials` maps the hash of each valid secret to its expiry, ms."""

    node_id: str
    pool: str
    approved: bool
    credentials: dict[str, int]
    hardware: str = ""
    token_id: str = ""
    is_revoked: bool = False
    former: dict[str, None] = field(default_factory=dict)
    """Hashes of the last secrets that were revoked, or replaced by a new enrolment or by renewals,
    oldest first. An older one is unknown, so it is refused as well."""
    valid_until: int = 0
    """Latest time at which a credential of it was to expire, ms; a revocation leaves it."""

    @property
    def expires_at(self) -> int:
        """Return when the newest credential expires, ms."""
        return max(self.credentials.values(), default=0)

    def apply(self, event: NodeApproved | NodeRevoked | NodeCredentialRenewed) -> None:
        match event:
            case NodeApproved():
                self.approved = True
            case NodeRevoked():
                self.former = _latest(self.former, self.credentials)
                self.is_revoked, self.credentials = True, {}
            case NodeCredentialRenewed():
                kept = {
                    event.previous_sha256: event.previous_until,
                    event.credential_sha256: event.expires_at,
                }
                dropped = {sha256: 0 for sha256 in self.credentials if sha256 not in kept}
                self.former, self.credentials = _latest(self.former, dropped), kept
                self.valid_until = max(self.valid_until, event.expires_at)

    def state(self, now: int) -> IdentityState:
        if self.is_revoked:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        return "approved" if self.approved else "pending"


class Refusal(NamedTuple):
    """The refusal of a credential: an HTTP status, a machine-readable reason and a detail."""

    status: Literal[401, 403]
    reason: str
    detail: str


UNKNOWN = Refusal(401, "unknown_credential", "credential: unknown; join the node first")


@dataclass(slots=True)
class NodeRegistry:
    """Folds the enrolment of nodes; `apply` ignores other events."""

    tokens: dict[str, JoinToken] = field(default_factory=dict)
    nodes: dict[str, EnrolledNode] = field(default_factory=dict)
    """In the order in which their newest credentials were issued."""

    def apply(self, event: Event) -> None:
        match event:
            case NodeTokenCreated(token_id=token_id):
                self.tokens[token_id] = JoinToken(event)
                self._forget_tokens()
            case NodeTokenRevoked(token_id=token_id):
                if token_id in self.tokens:
                    self.tokens[token_id] = self.tokens[token_id]._replace(is_revoked=True)
            case NodeEnrolled():
                self._enroll(event)
            case NodeForgotten(node_id=node_id):
                self.nodes.pop(node_id, None)
            case NodeApproved() | NodeRevoked() | NodeCredentialRenewed():
                if (node := self.nodes.get(event.node_id)) is not None:
                    node.apply(event)
                    if isinstance(event, NodeCredentialRenewed):
                        self.nodes[event.node_id] = self.nodes.pop(event.node_id)

    def verify_token(self, text: str) -> NodeTokenCreated | None:
        """Return the token with this text, also an expired one; None for a wrong one."""
        parsed = parse_key(text)
        if parsed is None:
            return None
        token = self.tokens.get(parsed.key_id)
        is_right = verify_secret(parsed.secret, token.created.sha256 if token else NO_HASH)
        return token.created if token is not None and is_right else None

    def authenticate(self, credential: str, now: int) -> EnrolledNode | Refusal:
        """Return the node of a credential `node_id.secret`, or why it may not work."""
        parsed = parse_key(credential)
        if parsed is None:
            return Refusal(401, "unknown_credential", "credential: not `node_id.secret`")
        node = self.nodes.get(parsed.key_id)
        sha256 = hash_secret(parsed.secret)
        known = {**node.credentials, **dict.fromkeys(node.former, 0)} if node else {NO_HASH: 0}
        matching = [known[digest] for digest in known if verify_secret(parsed.secret, digest)]
        if node is None or not matching:
            return UNKNOWN
        if sha256 in node.former:
            detail = f"node: {node.node_id}: revoked or replaced; {JOIN_AGAIN}"
            return Refusal(403, "node_revoked", detail)
        if matching[0] <= now:
            return Refusal(401, "credential_expired", f"node: {node.node_id}: join it again")
        if not node.approved:
            rule = f"an operator has to run `berth nodes approve {node.node_id}`"
            return Refusal(403, "node_not_approved", f"node: {node.node_id}: pending; {rule}")
        return node

    def valid_tokens(self, now: int) -> int:
        """Return the number of tokens with which a node may join at that time, in ms."""
        return sum(token.state(now) == "valid" for token in self.tokens.values())

    def _forget_tokens(self) -> None:
        """Forget the tokens beyond the bound: revoked and used up ones, then the earliest end."""
        while len(self.tokens) > TOKENS_KEPT:
            ended = min(self.tokens, key=lambda name: _order_of_end(self.tokens[name]))
            del self.tokens[ended]

    def _enroll(self, event: NodeEnrolled) -> None:
        old = self.nodes.pop(event.node_id, None)
        former = _latest(old.former, old.credentials) if old else {}
        former.pop(event.credential_sha256, None)
        self.nodes[event.node_id] = EnrolledNode(
            event.node_id,
            event.pool,
            event.approved,
            {event.credential_sha256: event.expires_at},
            event.hardware,
            event.token_id,
            former=former,
            valid_until=max(event.expires_at, old.valid_until if old else 0),
        )
        if (token := self.tokens.get(event.token_id)) is not None:
            self.tokens[event.token_id] = token._replace(uses=token.uses + 1)


def _latest(former: dict[str, None], ended: dict[str, int]) -> dict[str, None]:
    """Return the newest of the former secrets and those that ended now."""
    every = [*former, *ended]
    return dict.fromkeys(every[-FORMER_KEPT:])


def _order_of_end(token: JoinToken) -> tuple[bool, int]:
    return not (token.is_revoked or token.is_used_up), token.created.expires_at
