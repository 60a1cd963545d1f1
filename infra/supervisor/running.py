"""Addresses of a started stack, stored in its data directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from infra.security import kafka_users
from shared.process.connection import Connection

Broker = Literal["embedded", "kafka", "external", "kafka-plain"]
"""`external` is a Kafka that runs elsewhere; `kafka-plain` has no TLS, users or ACLs, to measure
their cost."""
FILE = "stack.json"
OPERATOR_KEY = "operator.key"
"""File of the operator key, written by the command line."""


class NoStack(SystemExit):
    """No stack is running in this directory."""


class RunningStack(BaseModel):
    """Addresses and ports of a stack; `ports` maps service to port name to port."""

    model_config = ConfigDict(frozen=True)

    data_dir: Path
    broker: Broker
    partitions: int
    kafka: str
    postgres: str
    host: str = ""
    """Where the API and the executors of agents listen, empty for the loopback."""
    gateway: str
    llm: str
    otlp: str
    state: Path
    work: Path
    agent_run: Path | None = None
    """Run folder of the agent of this machine; None where it is no node of the stack."""
    ports: dict[str, dict[str, int]]
    traces: str = ""
    """Address of Zipkin's page, empty without tracing."""
    tls: bool = False
    """CA file if `gateway` and `llm` use TLS."""
    recorded: str = ""
    """Directory of the recorded simulation that is shown, empty for a live stack."""
    ca: Path | None = None
    kafka_ca: Path | None = None
    """CA file of an external Kafka; that of the stack's own is `ca`."""
    is_postgres_external: bool = False
    archive: str = ""
    """Folder or address of the archive of ledgers, empty for none; it stays that of `data_dir`."""
    secrets: Path | None = None
    """Directory of the Kafka users' passwords; None without users."""

    @property
    def durable(self) -> bool:
        """Return whether the broker keeps its data over a restart, and has idempotent producers."""
        return self.broker != "embedded"

    @property
    def is_broker_external(self) -> bool:
        """Return whether the broker runs elsewhere, so that nothing of it is started or set up
        here.
        """
        return self.broker == "external"

    @property
    def has_node(self) -> bool:
        """Return whether this machine is a node of the stack."""
        return self.agent_run is not None

    @property
    def agent(self) -> Path:
        """Folder of the agent of this machine: its configuration, its identity, its workers."""
        return self.state.parent / "agent"

    def connection(self, user: str) -> Connection:
        """Return a connection as one of `infra.security.rights.users()`."""
        if self.secrets is None:
            return Connection(self.kafka, self.durable)
        password = kafka_users.password(self.secrets, user)
        return Connection(self.kafka, user=user, password=password, ca=self.kafka_ca or self.ca)


def save(stack: RunningStack) -> None:
    """Write the file atomically with mode 0600."""
    path = stack.data_dir / FILE
    scratch = path.with_suffix(".new")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(stack.model_dump_json(indent=2) + "\n")
    scratch.replace(path)


def load(data_dir: Path) -> RunningStack:
    """Return the stack started last in this directory. Raises NoStack."""
    try:
        return RunningStack.model_validate_json((data_dir / FILE).read_text())
    except FileNotFoundError:
        raise NoStack(f"no stack was ever started in {data_dir}; `berth up` starts one") from None
