"""The guarded broker, started once for all files of this folder that use it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from infra.broker import kafka
from infra.machine.process import free_ports
from tests.infra.security.on_kafka.guarded_broker import Guarded, create_users


@pytest.fixture(scope="package")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    (port,) = free_ports(1)
    running = kafka.start(folder, port)
    try:
        yield Guarded(running, folder, port, create_users(kafka.root(folder), folder / "secrets"))
    finally:
        running.stop()
