"""What a started stack is known by: its addresses, saved beside its data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from infra.security import kafka_users
from shared.connection import Connection

Broker = Literal["embedded", "kafka", "kafka-plain"]
"""`kafka-plain`, without TLS, users and ACLs, is what the price of these is measured against."""
FILE = "stack.json"
OPERATOR_KEY = "operator.key"
"""Kept by the command line; it is worth what the ledger of `access` remembers of it."""


class NoStack(SystemExit):
    """There is no stack in this folder, or it does not run."""


class RunningStack(BaseModel):
    """Addresses and ports of a stack; `ports` is service -> name of the port -> port."""

    model_config = ConfigDict(frozen=True)

    data_dir: Path
    broker: Broker
    partitions: int
    kafka: str
    postgres: str
    gateway: str
    llm: str
    otlp: str
    state: Path
    work: Path
    ports: dict[str, dict[str, int]]
    traces: str = ""
    """Where Zipkin's page is; empty: it was not asked for."""
    tls: bool = False
    """`gateway` and `llm` are asked over TLS, by certificates of `ca`."""
    recorded: str = ""
    """Folder of the simulation that is shown; empty: a stack that works."""
    ca: Path | None = None
    secrets: Path | None = None
    """Folder of the passwords of Kafka's users; None where it asks for none."""

    @property
    def durable(self) -> bool:
        """It keeps its data over a restart, and has idempotent producers."""
        return self.broker != "embedded"

    def connection(self, user: str) -> Connection:
        """The broker, as one of `infra.security.acls.users()`."""
        if self.secrets is None:
            return Connection(self.kafka, self.durable)
        password = kafka_users.password(self.secrets, user)
        return Connection(self.kafka, user=user, password=password, ca=self.ca)


def save(stack: RunningStack) -> None:
    """Write the file for this user's eyes only; a reader never sees half of it."""
    path = stack.data_dir / FILE
    scratch = path.with_suffix(".new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(stack.model_dump_json(indent=2) + "\n")
    scratch.replace(path)


def load(data_dir: Path) -> RunningStack:
    """The stack that was started last in this folder."""
    try:
        return RunningStack.model_validate_json((data_dir / FILE).read_text())
    except FileNotFoundError:
        raise NoStack(f"no stack was ever started in {data_dir}") from None
