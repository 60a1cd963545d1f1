"""Nodes get an identity: join tokens, enrolment, approval, renewal and revocation.

A node makes its secret itself; commands and events carry only the sha256 of secrets.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from shared.contracts.base import Command, Event, Name, Text, command, event

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Hardware = Annotated[str, Field(max_length=64)]
MAX_TOKEN_S = 30 * 86_400
"""The longest life of a join token, in seconds."""


@command
class CreateNodeToken(Command):
    """Register a join token by its hash; the token itself is shown once, by its creator."""

    TYPE: ClassVar[str] = "node.create-token.v1"
    OWNER: ClassVar[str] = "access"
    token_id: Name = Field(description="public first part of the token")
    sha256: Sha256 = Field(description="sha256 of the secret part")
    pool: Name = Field(description="pool of the nodes that join with it")
    ttl_s: int = Field(3600, ge=1, le=MAX_TOKEN_S, description="s until it expires")
    max_uses: int | None = Field(
        None, ge=1, le=100_000, description="nodes that may join with it; absent: any number"
    )
    approve: bool = Field(
        False, description="nodes that join with it need no `berth nodes approve`"
    )
    replace: bool = Field(
        False, description="a machine that joins with it may replace its own valid identity"
    )


@command
class RevokeNodeToken(Command):
    """End a join token before its time; nodes that joined with it keep their identities."""

    TYPE: ClassVar[str] = "node.revoke-token.v1"
    OWNER: ClassVar[str] = "access"
    token_id: Name = Field(description="public first part of the token")


@command
class EnrollNode(Command):
    """Give a node an identity, by a join token that the gateway has verified."""

    TYPE: ClassVar[str] = "node.enroll.v1"
    OWNER: ClassVar[str] = "access"
    node_id: Name = Field(description="the node")
    token_id: Name = Field(description="public part of the token")
    credential_sha256: Sha256 = Field(description="sha256 of the node's secret")
    hardware: str = Field("", max_length=64, description="hash of the machine's identity, or empty")


@command
class ApproveNode(Command):
    """Let an enrolled node work."""

    TYPE: ClassVar[str] = "node.approve.v1"
    OWNER: ClassVar[str] = "access"
    node_id: Name = Field(description="the node")


@command
class RevokeNode(Command):
    """Take a node's identity away; executors refuse it within about a second."""

    TYPE: ClassVar[str] = "node.revoke.v1"
    OWNER: ClassVar[str] = "access"
    node_id: Name = Field(description="the node")
    reason: Text = Field("", description="free text for the audit")


@command
class RenewNodeCredential(Command):
    """Replace the credential of a node, which has proved that it holds the present one."""

    TYPE: ClassVar[str] = "node.renew-credential.v1"
    OWNER: ClassVar[str] = "access"
    node_id: Name = Field(description="the node")
    presented_sha256: Sha256 = Field(description="sha256 of the secret that the node presented")
    credential_sha256: Sha256 = Field(description="sha256 of its new secret")
    hardware: Hardware = Field("", description="hash of the machine's identity, or empty")
    former_hardware: tuple[Hardware, ...] = Field(
        (), max_length=8, description="hashes by which earlier versions named the same machine"
    )


@command
class ForgetNode(Command):
    """Remove the identity of a node that is gone for good; its name is free then."""

    TYPE: ClassVar[str] = "node.forget.v1"
    OWNER: ClassVar[str] = "access"
    node_id: Name = Field(description="the node")


@event
class NodeTokenCreated(Event):
    """A join token is valid until it expires or is used up."""

    TYPE: ClassVar[str] = "node.token-created.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "token_id"
    PUBLIC: ClassVar[bool] = False
    token_id: Name = Field(description="public first part of the token")
    sha256: str = Field(description="sha256 of the secret part")
    pool: Name = Field(description="pool of the nodes that join with it")
    expires_at: int = Field(description="ms, when it expires")
    max_uses: int | None = Field(None, description="nodes that may join; absent: any number")
    approve: bool = Field(False, description="its nodes need no approval")
    replace: bool = Field(False, description="a machine may replace its own valid identity")


@event
class NodeTokenRevoked(Event):
    """No node joins with the token any more."""

    TYPE: ClassVar[str] = "node.token-revoked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "token_id"
    PUBLIC: ClassVar[bool] = False
    token_id: Name = Field(description="public first part of the token")


@event
class NodeEnrolled(Event):
    """A node has an identity, in place of an earlier one; it works once it is approved."""

    TYPE: ClassVar[str] = "node.enrolled.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    pool: Name = Field(description="its pool")
    credential_sha256: str = Field(description="sha256 of its secret")
    approved: bool = Field(description="whether it needs no approval any more")
    expires_at: int = Field(description="ms, when the credential expires unless renewed")
    token_id: str = Field("", description="token that it joined with")
    hardware: str = Field("", description="hash of the machine's identity, or empty")


@event
class NodeApproved(Event):
    """An operator let the node work."""

    TYPE: ClassVar[str] = "node.approved.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")


@event
class NodeRevoked(Event):
    """The node has no identity any more; it may enrol anew, with another credential."""

    TYPE: ClassVar[str] = "node.revoked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    reason: str = Field("", description="reason as given in the command")


@event
class NodeCredentialRenewed(Event):
    """A node has a new credential; the one it presented stays valid for a while.

    So a node that did not get the answer can still authenticate and renew again.
    """

    TYPE: ClassVar[str] = "node.credential-renewed.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
    credential_sha256: str = Field(description="sha256 of the new secret")
    expires_at: int = Field(description="ms, when the new credential expires")
    previous_sha256: str = Field(description="sha256 of the secret that was presented")
    previous_until: int = Field(description="ms, when that one ceases to be valid")


@event
class NodeForgotten(Event):
    """The node is gone for good: no identity of that name is known any more."""

    TYPE: ClassVar[str] = "node.forgotten.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "node_id"
    PUBLIC: ClassVar[bool] = False
    node_id: Name = Field(description="the node")
