"""Options of `berth up` that name addresses: external parts, and where the stack listens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli.errors import BadInput

if TYPE_CHECKING:
    from infra.supervisor.external import ExternalKafka, ExternalPostgres
    from infra.supervisor.listening import Listen


def external_kafka(broker: str) -> ExternalKafka | None:
    """Return the Kafka of `--broker HOST:PORT,...`, None for a broker of the stack's own."""
    if broker in ("embedded", "kafka"):
        return None
    from infra.security.kafka_users import NoPassword
    from infra.supervisor.external import BadExternal, read_kafka

    try:
        return read_kafka(broker, os.environ)
    except (BadExternal, NoPassword) as error:
        raise BadInput(str(error)) from None


def external_postgres(text: str, broker: str) -> ExternalPostgres | None:
    """Return the Postgres of `--postgres`, None for the stack's own."""
    if not text:
        return None
    if broker == "embedded":
        raise BadInput(
            "--postgres: its tables outlive the embedded broker, which keeps nothing; "
            "--broker must be kafka or HOST:PORT,..."
        )
    from infra.supervisor.external import BadExternal, read_postgres

    try:
        return read_postgres(text)
    except BadExternal as error:
        raise BadInput(str(error)) from None


def listen_of(text: str, port: int, tls: bool) -> Listen | None:
    """Return the address of `--listen`, None if it was not given. Raises BadInput."""
    if not text:
        return None
    if port:
        raise BadInput(f"--port {port}: given beside --listen; name it there, as HOST:PORT")
    from infra.supervisor.listening import BadAddress, parse_listen

    try:
        return parse_listen(text, tls)
    except BadAddress as error:
        raise BadInput(str(error)) from None
