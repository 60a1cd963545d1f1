"""The identity of a node: its id, its secret, and the addresses of its control plane."""

from __future__ import annotations

import hashlib
import secrets
import ssl
from dataclasses import asdict, dataclass
from pathlib import Path

from berth_agent.linux import files
from berth_agent.messages import Joined, JoinRequest, RenewRequest
from berth_agent.node.http import Connection, parse_address, tls_context

REQUEST_S = 30.0
SECRET_BYTES = 32


class NoIdentity(Exception):
    """The node has not joined; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The file that `berth-agent join` leaves in the state folder, for root's eyes only."""

    node_id: str
    pool: str
    secret: str
    gateway: str
    executors: tuple[str, ...]
    expires_at: int
    """ms since the Unix epoch."""
    approved: bool
    ca: str
    """PEM of the installation's CA; empty: those that the system trusts."""
    next_secret: str = ""
    """Secret whose renewal may have been lost on its way."""
    has_own_executors: bool = False
    """The addresses of the executors were given at the join: a renewal does not replace them."""

    @property
    def credential(self) -> str:
        return f"{self.node_id}.{self.secret}"

    def __repr__(self) -> str:
        return f"Identity({self.node_id!r})"


def read_identity(state: str) -> Identity:
    """Read the identity. Raises NoIdentity, OSError."""
    path = f"{state}/identity.json"
    try:
        document = files.read_json(path)
        if document is None:
            raise NoIdentity(f"{path}: missing; run `berth-agent join` first")
        return Identity(**{**document, "executors": tuple(document["executors"])})
    except (ValueError, TypeError, KeyError) as error:
        raise NoIdentity(f"{path}: damaged: {error}; run `berth-agent join` again") from None


def write_identity(state: str, identity: Identity) -> None:
    """Make the identity durable. Raises OSError."""
    files.write_json(f"{state}/identity.json", asdict(identity))


def tls_of(identity: Identity) -> ssl.SSLContext:
    """Return the trust in the pinned CA, or in the system's."""
    if not identity.ca:
        return tls_context(None)
    return ssl.create_default_context(cadata=identity.ca)


def join(
    gateway: str, token: str, node_id: str, hardware: str, ca: str, executors: tuple[str, ...]
) -> Identity:
    """Join by a token, with a secret that never leaves the node. Raises RequestFailed, OSError."""
    secret = secrets.token_hex(SECRET_BYTES)
    pem = Path(ca).read_text(encoding="ascii") if ca else ""
    request = JoinRequest(
        node_id=node_id, token=token, credential_sha256=_sha256(secret), hardware=hardware
    )
    connection = Connection(parse_address(gateway), tls_context(ca or None), "")
    try:
        joined = connection.post("/agent/v1/join", request, Joined, REQUEST_S)
    finally:
        connection.close()
    return Identity(
        node_id=joined.node_id,
        pool=joined.pool,
        secret=secret,
        gateway=gateway,
        executors=executors or joined.executors,
        has_own_executors=bool(executors),
        expires_at=joined.expires_at,
        approved=joined.approved,
        ca=pem,
    )


def prepare_renewal(identity: Identity) -> Identity:
    """Return the identity with a next secret, to be written before it is sent."""
    secret = identity.next_secret or secrets.token_hex(SECRET_BYTES)
    return Identity(**{**asdict(identity), "next_secret": secret})


def renew(identity: Identity) -> Identity:
    """Replace the secret by the next one. Raises RequestFailed: a repetition is harmless."""
    request = RenewRequest(credential_sha256=_sha256(identity.next_secret))
    address = parse_address(identity.gateway)
    connection = Connection(address, tls_of(identity), identity.credential)
    try:
        joined = connection.post("/agent/v1/renew", request, Joined, REQUEST_S)
    finally:
        connection.close()
    return Identity(
        **{
            **asdict(identity),
            "secret": identity.next_secret,
            "next_secret": "",
            "executors": _renewed_executors(identity, joined),
            "expires_at": joined.expires_at,
            "approved": joined.approved,
        }
    )


def _renewed_executors(identity: Identity, joined: Joined) -> tuple[str, ...]:
    if identity.has_own_executors:
        return identity.executors
    return joined.executors or identity.executors


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
