"""Distinguishes a broker that refuses the credentials from one that is away.

aiokafka raises the same error for both.
"""

from __future__ import annotations

import asyncio
import ssl

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)

from shared.ledger.errors import Forbidden
from shared.process.connection import Connection

WITHIN_S = 5.0
NOT_ALLOWED = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
"""The ACLs of `infra.security.rights` do not grant it."""
NOT_LET_IN = (
    AuthenticationFailedError,
    AuthenticationMethodNotSupported,
    SaslAuthenticationFailed,
    ssl.SSLCertVerificationError,
)
"""A wrong user or password, or a certificate of either side that is not valid."""


async def check_authentication(connection: Connection) -> None:
    """Raise Forbidden if a server of a secured broker refuses the credentials."""
    if connection.ca is None:
        return
    arguments = connection.aiokafka()
    for server in arguments.pop("bootstrap_servers").split(","):
        await _check(connection, server, arguments)


async def _check(connection: Connection, server: str, arguments: dict[str, object]) -> None:
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(WITHIN_S):
            conn = await create_conn(host, int(port), **arguments)
    except NOT_LET_IN as error:
        user = connection.user or "this certificate"
        raise Forbidden(f"{server} refuses {user}: {error}") from None
    except (KafkaError, OSError, TimeoutError):
        return
    conn.close()
