"""An OTLP/HTTP endpoint on loopback, and facts for tests."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.contracts.placement import Allocation, JobHeld, JobPlaced
from shared.ledger.decider import Fact
from shared.telemetry import otlp_export
from shared.telemetry.json_logs import log_json
from tests.patience import PATIENCE_S
from tests.serving import Quiet, serving


class Sink(ThreadingHTTPServer):
    """Stores every body; responds with the next of `answers`, then with 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        self.answers: list[int] = []
        self.delay_s = 0.0
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def requests(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(body) for body in self.bodies]

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests()
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class _Handler(Quiet):
    protocol_version = "HTTP/1.1"
    server: Sink

    def do_POST(self) -> None:
        body = self.received()
        self.server.closing.wait(self.server.delay_s)
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status == 200 and self.path == "/v1/traces":
            self.server.bodies.append(body)
        self.answer(status)


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    monkeypatch.setattr(otlp_export, "REQUEST_TIMEOUT_S", PATIENCE_S)
    server = Sink()
    with serving(server):
        yield server
        server.closing.set()


def placed(job_id: str = "j1", traceparent: str = "", seq: int = 7, score: float = 0.5) -> Fact:
    event = JobPlaced(
        job_id=job_id,
        tenant="vision",
        attempt=1,
        allocations=(Allocation(rank=0, node_id="n1", gpus=(0, 1)),),
        waited_ms=40,
        policy="best_fit",
        score=score,
    )
    return Fact(event, "placement", 2, seq, 0, 1_000, "admission/2/4/0", traceparent)


def held(job_id: str = "j1", traceparent: str = "") -> Fact:
    event = JobHeld(job_id=job_id, tenant="vision", reason="no_capacity", short_gpus=8)
    return Fact(event, "placement", 2, 8, 1, 1_000, "", traceparent)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log that a service writes during the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    log_json("placement", "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
