"""The nodes of the access ledger: join tokens, credentials, and what each of them permits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from shared.contracts.base import Event
from shared.contracts.enrolment import (
    NodeApproved,
    NodeCredentialRenewed,
    NodeEnrolled,
    NodeRevoked,
    NodeTokenCreated,
    NodeTokenRevoked,
)
from shared.contracts.keys import hash_secret, parse_key, verify_secret

JOIN_AGAIN = "run `berth-agent join --again` with a new token, and restart the agent"
NO_HASH = "0" * 64
"""The hash of no secret: an unknown node is refused as slowly as a wrong secret."""

TokenState = Literal["valid", "expired", "used_up", "revoked"]
NodeState = Literal["pending", "approved", "revoked", "expired"]


class JoinToken(NamedTuple):
    """A join token and the number of nodes that used it."""

    created: NodeTokenCreated
    uses: int = 0
    is_revoked: bool = False

    def state(self, now: int) -> TokenState:
        """Return whether a node may join with it at that time, in ms."""
        if self.is_revoked:
            return "revoked"
        if self.created.expires_at <= now:
            return "expired"
        is_used_up = self.created.max_uses is not None and self.uses >= self.created.max_uses
        return "used_up" if is_used_up else "valid"


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
    former: set[str] = field(default_factory=set)
    """Hashes of secrets that were revoked: they never become valid again."""

    @property
    def expires_at(self) -> int:
        """Return when the newest credential expires, ms."""
        return max(self.credentials.values(), default=0)

    def apply(self, event: NodeApproved | NodeRevoked | NodeCredentialRenewed) -> None:
        match event:
            case NodeApproved():
                self.approved = True
            case NodeRevoked():
                self.former |= self.credentials.keys()
                self.is_revoked, self.credentials = True, {}
            case NodeCredentialRenewed():
                self.credentials = {
                    event.previous_sha256: event.previous_until,
                    event.credential_sha256: event.expires_at,
                }

    def state(self, now: int) -> NodeState:
        if self.is_revoked:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        return "approved" if self.approved else "pending"


class Refusal(NamedTuple):
    """Why a credential is refused: an HTTP status, a machine-readable reason and a detail."""

    status: Literal[401, 403]
    reason: str
    detail: str


UNKNOWN = Refusal(401, "unknown_credential", "credential: unknown; join the node first")


@dataclass(slots=True)
class NodeRegistry:
    """Folds the enrolment of nodes; `apply` ignores other events."""

    tokens: dict[str, JoinToken] = field(default_factory=dict)
    nodes: dict[str, EnrolledNode] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        match event:
            case NodeTokenCreated(token_id=token_id):
                self.tokens[token_id] = JoinToken(event)
            case NodeTokenRevoked(token_id=token_id):
                if token_id in self.tokens:
                    self.tokens[token_id] = self.tokens[token_id]._replace(is_revoked=True)
            case NodeEnrolled():
                self._enroll(event)
            case NodeApproved() | NodeRevoked() | NodeCredentialRenewed():
                if (node := self.nodes.get(event.node_id)) is not None:
                    node.apply(event)

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
            return Refusal(403, "node_revoked", f"node: {node.node_id}: revoked; {JOIN_AGAIN}")
        if matching[0] <= now:
            return Refusal(401, "credential_expired", f"node: {node.node_id}: join it again")
        if not node.approved:
            rule = "an operator has to run `berth nodes approve`"
            return Refusal(403, "node_not_approved", f"node: {node.node_id}: pending; {rule}")
        return node

    def _enroll(self, event: NodeEnrolled) -> None:
        old = self.nodes.get(event.node_id)
        self.nodes[event.node_id] = EnrolledNode(
            event.node_id,
            event.pool,
            event.approved,
            {event.credential_sha256: event.expires_at},
            event.hardware,
            event.token_id,
            former=set(old.former) if old else set(),
        )
        if (token := self.tokens.get(event.token_id)) is not None:
            self.tokens[event.token_id] = token._replace(uses=token.uses + 1)
