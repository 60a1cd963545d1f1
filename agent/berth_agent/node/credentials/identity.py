"""The identity of a node: its id, its secret, and the addresses of its control plane."""

from __future__ import annotations

import hashlib
import secrets
import ssl
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from berth_agent import file_names
from berth_agent.linux import files
from berth_agent.linux.clocks import wall_ms
from berth_agent.messages import (
    HELLO_PATH,
    JOIN_PATH,
    RENEW_PATH,
    Joined,
    JoinRequest,
    RenewRequest,
)
from berth_agent.node.connection.http import Connection, RequestFailed, parse_address, tls_context
from berth_agent.node.credentials import trust
from berth_agent.node.system.machine import read_boot_id

REQUEST_S = 30.0
PROBE_S = 5.0
SECRET_BYTES = 32
MARK_CHARS = 12
REVOKED = "credential_revoked"
PLAIN_SIGNS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF")
"""In the error of TLS with a server that speaks none."""
TLS_SIGNS = ("closed connection", "reset by peer", "\x15\x03")
"""In the error of HTTP without TLS with a server that requires it; the last is a TLS alert."""


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
    """PEM of the installation's CA, the present certificate first; empty: those that the system
    trusts."""
    next_secret: str = ""
    """Secret whose renewal may have been accepted, although no answer arrived."""
    has_own_executors: bool = False
    """The addresses of the executors were given at the join: a renewal does not replace them."""
    installation: str = ""
    """Mark of the installation that it joined: its id, or what an older one is known by. Empty: it
    joined before there were any, and has heard of none since."""
    issued_ms: int = 0
    """When the credential was given, ms since the Unix epoch; 0: an older agent did not note it."""
    has_own_name: bool = False
    """No other installation has a node of its name, so that it needs no mark."""

    @property
    def credential(self) -> str:
        return f"{self.node_id}.{self.secret}"

    @property
    def next_credential(self) -> str:
        """The credential with the next secret; the present one where there is none."""
        return f"{self.node_id}.{self.next_secret or self.secret}"

    def __repr__(self) -> str:
        return f"Identity({self.node_id!r})"


def read_identity(state: str) -> Identity:
    """Read the identity; fields of a newer agent are ignored. Raises NoIdentity, OSError."""
    path = f"{state}/{file_names.IDENTITY}"
    try:
        document = files.read_json(path)
        if document is None:
            raise NoIdentity(f"{path}: missing; run `berth-agent join` first")
        names = {field.name for field in fields(Identity)}
        known = {name: value for name, value in document.items() if name in names}
        return Identity(**{**known, "executors": tuple(document["executors"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NoIdentity(f"{path}: damaged: {error}; run `berth-agent join` again") from None


def write_identity(state: str, identity: Identity) -> None:
    """Make the identity durable. Raises OSError."""
    files.write_json(f"{state}/{file_names.IDENTITY}", asdict(identity))


def tls_of(identity: Identity) -> ssl.SSLContext:
    """Return the trust in the pinned CA, or in the system's."""
    return trust.context_of(identity.ca) if identity.ca else tls_context(None)


def join(
    state: str,
    gateway: str,
    token: str,
    node_id: str,
    hardware: str,
    ca: str,
    executors: tuple[str, ...],
) -> Identity:
    """Join by a token and write the identity; its secret never leaves the node.

    The secret is on disk before its hash is sent: where the answer is lost, the same command joins
    with it again, which the control plane takes for a repetition. Raises what `trust.read` does,
    RequestFailed.
    """
    pem = trust.read(ca) if ca else ""
    connection = Connection(parse_address(gateway), tls_context(ca or None), "")
    try:
        secret, joined = _enrolled(connection, state, token, node_id, hardware)
    except RequestFailed as failure:
        raise _explained(gateway, failure) from None
    finally:
        connection.close()
    identity = Identity(
        node_id=joined.node_id,
        pool=joined.pool,
        secret=secret,
        gateway=gateway,
        executors=executors or joined.executors,
        has_own_executors=bool(executors),
        expires_at=joined.expires_at,
        issued_ms=wall_ms(),
        approved=joined.approved,
        ca=trust.with_newer(pem, joined.ca),
        installation=joined.installation or mark_of(gateway, pem),
    )
    write_identity(state, identity)
    _end_join(state)
    return identity


def _enrolled(
    connection: Connection, state: str, token: str, node_id: str, hardware: str
) -> tuple[str, Joined]:
    """Return secret and answer; a secret that was revoked after a lost answer is made anew."""
    while True:
        secret, is_repeated = _begin_join(state, node_id, token)
        request = JoinRequest(
            node_id=node_id, token=token, credential_sha256=_sha256(secret), hardware=hardware
        )
        try:
            return secret, connection.post(JOIN_PATH, request, Joined, REQUEST_S)
        except RequestFailed as failure:
            if not (is_repeated and failure.reason == REVOKED):
                raise
        _end_join(state)


def _begin_join(state: str, node_id: str, token: str) -> tuple[str, bool]:
    """Return the secret to join with, and whether an earlier join may have used it.

    It is that of an earlier join by the same token, in the same boot: a copy of the disk on another
    machine, and another token, get a secret of their own.
    """
    path = f"{state}/{file_names.JOINING}"
    attempt = _sha256(f"{node_id} {read_boot_id()} {token}")
    try:
        kept = files.read_json(path)
    except ValueError:
        kept = None
    if isinstance(kept, dict) and kept.get("attempt") == attempt and kept.get("secret"):
        return str(kept["secret"]), True
    secret = secrets.token_hex(SECRET_BYTES)
    files.write_json(path, {"attempt": attempt, "secret": secret})
    return secret, False


def _end_join(state: str) -> None:
    """Remove the secret of the join durably: it must not be there again once it is revoked."""
    Path(state, file_names.JOINING).unlink(missing_ok=True)
    files.sync_folder(state)


def _explained(gateway: str, failure: RequestFailed) -> RequestFailed:
    """Return the failure of a join with its likely cause, where the answer itself names none."""
    text, is_tls = str(failure), gateway.startswith("https:")
    if failure.status and failure.reason == f"http_{failure.status}":
        text = f"{gateway} does not answer as a Berth gateway (HTTP {failure.status})"
    elif failure.reason == "malformed_answer":
        text = f"{gateway} does not answer as a Berth gateway: {text}"
    elif is_tls and any(sign in text for sign in PLAIN_SIGNS):
        text += f"; {gateway} seems to answer without TLS: check the port and https://"
    elif not is_tls and any(sign in text for sign in TLS_SIGNS):
        text += f"; {gateway} seems to require TLS: check the port, and try https://"
    return RequestFailed(failure.status, text, "", failure.retry_after_s)


def probe(identity: Identity) -> RequestFailed | None:
    """Return the refusal of this credential by an executor; None if none answers or it is valid.

    The message has no content: it is refused in any case, after the credential was checked.
    """
    refusal: RequestFailed | None = None
    for credential in dict.fromkeys((identity.credential, identity.next_credential)):
        for url in identity.executors:
            connection = Connection(parse_address(url), tls_of(identity), credential)
            try:
                connection.exchange(HELLO_PATH, {}, PROBE_S)
            except RequestFailed as failure:
                if failure.status in (401, 403):
                    refusal = failure
                elif failure.status:
                    return None
            finally:
                connection.close()
    return refusal


def prepare_renewal(identity: Identity) -> Identity:
    """Return the identity with a next secret, to be written before it is sent."""
    secret = identity.next_secret or secrets.token_hex(SECRET_BYTES)
    return replace(identity, next_secret=secret)


def renew(identity: Identity, credential: str, machine: Sequence[str]) -> Identity:
    """Replace the secret by the next one. Raises RequestFailed: a repetition is harmless.

    `credential` is the present one or, after an answer that was lost, the next one; `machine` are
    the hashes of this machine, the present one first.
    """
    request = RenewRequest(
        credential_sha256=_sha256(identity.next_secret),
        hardware=machine[0],
        former_hardware=tuple(machine[1:]),
    )
    connection = Connection(parse_address(identity.gateway), tls_of(identity), credential)
    try:
        joined = connection.post(RENEW_PATH, request, Joined, REQUEST_S)
    finally:
        connection.close()
    return replace(
        with_installation(identity, joined.installation),
        secret=identity.next_secret,
        next_secret="",
        executors=_renewed_executors(identity, joined),
        expires_at=joined.expires_at,
        approved=joined.approved,
        ca=trust.with_newer(identity.ca, joined.ca),
    )


def _renewed_executors(identity: Identity, joined: Joined) -> tuple[str, ...]:
    if identity.has_own_executors:
        return identity.executors
    return joined.executors or identity.executors


def with_installation(identity: Identity, id: str) -> Identity:
    """Return the identity with the id of its installation as the mark, if it is one."""
    is_used = bool(id) and not identity.has_own_name
    return replace(identity, installation=id) if is_used else identity


def mark_of(gateway: str, pem: str) -> str:
    """Return the mark of an older installation, which names no id: of its CA, or of its address
    where the system's CAs are trusted.
    """
    text = "".join(pem.split()) or gateway.rstrip("/").lower()
    return _sha256(text)[:MARK_CHARS]


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
