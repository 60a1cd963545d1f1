"""A tenant's user on the broker."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from cli.errors import BadInput, Refused
from cli.stack.bring_up import make_topics
from infra.broker import topics
from infra.security import acls, rights
from infra.supervisor.running import RunningStack
from shared.contracts.topics import submissions, tenant_answers, tenant_events, tenant_requests
from shared.process.connection import MECHANISM, Connection


class ClientSettings(TypedDict):
    """Connection settings of a tenant's Kafka client."""

    servers: str
    protocol: str
    mechanism: str
    user: str
    password: str
    ca: str
    writes: str
    requests: str
    reads: str
    answers: str
    groups: str


def client_settings(stack: RunningStack, tenant: str) -> ClientSettings:
    """Create the user with a new password, and its topics; an old password is revoked."""
    admin = _admin_connection(stack)
    make_topics(stack, [tenant])
    connected = topics.connect(admin)
    try:
        password = acls.create_user(connected, tenant)
    finally:
        connected.close()
    return ClientSettings(
        servers=stack.kafka,
        protocol=admin.protocol,
        mechanism=MECHANISM,
        user=user_of(tenant),
        password=password,
        ca=str(admin.ca),
        writes=submissions(tenant).name,
        requests=tenant_requests(tenant).name,
        reads=tenant_events(tenant).name,
        answers=tenant_answers(tenant).name,
        groups=f"{tenant}/*",
    )


def user_of(tenant: str) -> str:
    """Return the name of a tenant's user on the broker."""
    return rights.TENANT + tenant


def remove_user(stack: RunningStack, tenant: str) -> bool:
    """Remove the user and its rights, also of open connections; False if it had none."""
    connected = topics.connect(_admin_connection(stack))
    try:
        return acls.remove_user(connected, tenant)
    finally:
        connected.close()


def store(path: Path, settings: ClientSettings) -> None:
    """Write the settings to a file of mode 0600, replacing it atomically."""
    half = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            json.dump(settings, out, indent=2)
            out.write("\n")
        half.replace(path)
    except OSError as error:
        with suppress(OSError):
            half.unlink(missing_ok=True)
        raise BadInput(f"--out {path}: {error.strerror}") from None


def _admin_connection(stack: RunningStack) -> Connection:
    if stack.secrets is None:
        raise Refused("the embedded broker has no users; start with `berth up --broker kafka`")
    return stack.connection(rights.ADMIN)
