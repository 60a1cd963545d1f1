"""Tells a broker that refuses us from one that is away: aiokafka says the same of both."""

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

from shared.connection import Connection
from shared.ledger.errors import Forbidden

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
"""A wrong password or user, or a certificate, ours or theirs, that is not good."""


async def check_authentication(connection: Connection) -> None:
    """Raises Forbidden where a server of a guarded broker refuses us; else says nothing."""
    if connection.ca is None:
        return
    how = connection.aiokafka()
    for server in how.pop("bootstrap_servers").split(","):
        await _check(connection, server, how)


async def _check(connection: Connection, server: str, how: dict[str, object]) -> None:
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(WITHIN_S):
            conn = await create_conn(host, int(port), **how)
    except NOT_LET_IN as error:
        who = connection.user or "this certificate"
        raise Forbidden(f"{server} does not let {who} in: {error}") from None
    except (KafkaError, OSError, TimeoutError):
        return
    conn.close()
