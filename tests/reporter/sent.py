"""A reporter and the datagrams that it sent."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.telemetry_receiver import Datagram, parse
from berth_reporter import Reporter


class Sent:
    """A socket in place of the agent's."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        self.environ = {"BERTH_TELEMETRY": str(path), "BERTH_TELEMETRY_TOKEN": "5ecret"}
        self.reporter = Reporter(environ=self.environ)

    def datagrams(self) -> list[Datagram]:
        """Return the iterations that were sent since the last call."""
        read: list[Datagram] = []
        while True:
            try:
                parsed = parse(self._socket.recv(65536))
            except BlockingIOError:
                return read
            assert isinstance(parsed, Datagram)
            read.append(parsed)

    def close(self) -> None:
        self.reporter.close()
        self._socket.close()


@pytest.fixture(name="sent")
def sent_fixture(tmp_path: Path) -> Iterator[Sent]:
    sent = Sent(tmp_path / "telemetry")
    yield sent
    sent.close()
