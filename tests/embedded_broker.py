"""An embedded broker of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.broker import tansu, topics
from infra.machine.process import free_ports
from shared.contracts.topics import TOPICS, TopicSpec
from shared.process.connection import Connection


@contextmanager
def embedded_broker(folder: Path, lanes: int = 1, *more: TopicSpec) -> Iterator[str]:
    """Yield the address of a broker that has the topics of the contracts, and more."""
    (port,) = free_ports(1)
    running = tansu.start(folder, port)
    address = f"127.0.0.1:{port}"
    try:
        connection = Connection(address, idempotent=False)
        topics.create(connection, lanes, False, (*TOPICS.values(), *more))
        yield address
    finally:
        running.stop()
