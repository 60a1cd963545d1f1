"""A tenant's own user on the broker: what its programs publish and read with."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from cli.bring_up import make_topics
from cli.errors import BadInput, Refused
from infra.broker import topics
from infra.security import acls
from infra.supervisor.running import RunningStack
from shared.connection import MECHANISM, Connection
from shared.contracts.topics import submissions, tenant_events


class Entrance(TypedDict):
    """All that a client has to be told."""

    servers: str
    protocol: str
    mechanism: str
    user: str
    password: str
    ca: str
    writes: str
    reads: str
    groups: str


def entrance(stack: RunningStack, tenant: str) -> Entrance:
    """A new password; one that the tenant had ends with it. Its topics are made as well."""
    admin = _guarded(stack)
    make_topics(stack, [tenant])
    connected = topics.connect(admin)
    try:
        password = acls.let_in(connected, tenant)
    finally:
        connected.close()
    return Entrance(
        servers=stack.kafka,
        protocol=admin.protocol,
        mechanism=MECHANISM,
        user=user_of(tenant),
        password=password,
        ca=str(stack.ca),
        writes=submissions(tenant).name,
        reads=tenant_events(tenant).name,
        groups=f"{tenant}/*",
    )


def user_of(tenant: str) -> str:
    """Its name on the broker."""
    return acls.TENANT + tenant


def shut_out(stack: RunningStack, tenant: str) -> bool:
    """Its rights end at once, also those of open connections. False: it had no user."""
    connected = topics.connect(_guarded(stack))
    try:
        return acls.shut_out(connected, tenant)
    finally:
        connected.close()


def keep(path: Path, found: Entrance) -> None:
    """For this user's eyes only, from its first moment; what was there is replaced as a whole."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(found, out, indent=2)
            out.write("\n")
        half.replace(path)
    except OSError as error:
        with suppress(OSError):
            half.unlink(missing_ok=True)
        raise BadInput(f"--out {path}: {error.strerror}") from None


def _guarded(stack: RunningStack) -> Connection:
    if stack.secrets is None:
        raise Refused("this broker asks nobody for a password; `berth up --broker kafka` does")
    return stack.connection(acls.ADMIN)
