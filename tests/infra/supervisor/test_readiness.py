"""The reason for which a service is not ready, as its own health check says."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import HTTPServer

import pytest

from infra.machine.process import free_ports
from infra.supervisor.readiness import is_ready, why_not_ready
from tests.serving import Quiet, serving


class Health(Quiet):
    """Answers with the status and the body that a test has set."""

    status, body = 200, b"{}"

    def do_GET(self) -> None:
        self.answer(Health.status, Health.body)


@pytest.fixture
def port() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Health)
    with serving(server):
        yield server.server_port


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, b'{"ready": true}', ""),
        (503, b'{"ready": false, "reason": "pools unknown yet: [1]"}', "pools unknown yet: [1]"),
        (503, b"<html>", "no reason given"),
        (503, b"{}", "no reason given"),
    ],
)
def test_the_reason_is_that_of_the_health_check(
    port: int, status: int, body: bytes, reason: str
) -> None:
    Health.status, Health.body = status, body
    assert why_not_ready(port) == reason
    assert is_ready(port) is (reason == "")


def test_a_service_without_a_process_does_not_answer() -> None:
    (closed,) = free_ports(1)
    assert why_not_ready(closed) == "its process does not answer"
    assert not is_ready(closed)
