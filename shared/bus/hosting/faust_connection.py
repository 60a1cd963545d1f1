"""The broker's address and credentials as Faust takes them."""

from __future__ import annotations

import faust

from shared.process.connection import MECHANISM, Arguments, Connection


def faust_arguments(connection: Connection) -> Arguments:
    """Return the arguments of `faust.App` for this connection."""
    broker = {"broker": [f"kafka://{server}" for server in connection.servers.split(",")]}
    context = connection.tls()
    if context is None:
        return broker
    credentials = (
        faust.SASLCredentials(
            username=connection.user,
            password=connection.password,
            ssl_context=context,
            mechanism=MECHANISM,
        )
        if connection.user
        else faust.SSLCredentials(context)
    )
    return {**broker, "broker_credentials": credentials}
