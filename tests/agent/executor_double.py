"""An executor for one node: a real HTTP server that speaks the contract, with faults on demand.

Requests are validated by the contract's own models. The ledger is a list of orders.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from pydantic import BaseModel

from services.executor.sessions.http import ENDPOINTS
from shared.contracts import agents as wire

MODELS: dict[str, type[BaseModel]] = {
    "hello": wire.Hello,
    "heartbeat": wire.Heartbeat,
    "orders": wire.OrdersRequest,
    "reports": wire.ReportsRequest,
    "stream": wire.Stream,
}
Fault = Callable[[str, BaseModel], None]


class Refuse(Exception):
    """Raised by a fault: answer with this status."""

    def __init__(self, status: int) -> None:
        self.status = status


class Vanish(Exception):
    """Raised by a fault: close the connection without an answer."""


class ExecutorDouble:
    """Everything it received, and the orders that it gives. Used under `changed`."""

    def __init__(self, stop_after_s: float | None = 600.0) -> None:
        self.changed = threading.Condition()
        self.terms: dict[str, Any] = {
            "terms_id": "t1",
            "stop_after_s": stop_after_s,
            "heartbeat_s": 0.2,
            "request_timeout_s": 5.0,
            "reconnect_s": 0.5,
        }
        self.max_bytes = {name: endpoint.max_bytes for name, endpoint in ENDPOINTS.items()}
        """Largest body of a request, as the executor has it."""
        self.orders: list[dict[str, Any]] = []
        self.confirmations: list[dict[str, Any]] = []
        self.reports: list[Any] = []
        """Reports by incarnation and number, each once."""
        self.hellos: list[wire.Hello] = []
        self.heartbeats: list[wire.Heartbeat] = []
        self.streamed: list[wire.Stream] = []
        self.joined: wire.Incarnation | None = None
        self.action: str | None = None
        """Forced action of the next hellos."""
        self.auto_join = True
        self.before: Fault = lambda endpoint, message: None
        self.after: Fault = lambda endpoint, message: None
        """Faults before and after a request has its effect."""
        self._session = ""
        self._seen: set[tuple[str, int]] = set()
        self._seq = 1
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def order(self, kind: str, allocation_id: str = "", **fields: Any) -> dict[str, Any]:
        """Append an order for the joined incarnation."""
        with self.changed:
            assert self.joined is not None or "incarnation" in fields
            self._seq += 1
            order = {
                "kind": kind,
                "position": {"seq": self._seq, "index": 0},
                "incarnation": self.joined.uuid if self.joined else "",
                "allocation_id": allocation_id,
                **fields,
            }
            self.orders.append(order)
            self.changed.notify_all()
            return order

    def wait(self, reached: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait for a fact about what was received."""
        with self.changed:
            assert self.changed.wait_for(reached, within_s), f"not reached: {self.reports}"

    def wait_for(self, kind: str, allocation_id: str = "") -> Any:
        """Wait for a report and return it."""
        self.wait(lambda: bool(self.of_kind(kind, allocation_id)))
        return self.of_kind(kind, allocation_id)[-1]

    def of_kind(self, kind: str, allocation_id: str = "") -> list[Any]:
        return [
            report
            for report in self.reports
            if report.kind == kind
            and (not allocation_id or getattr(report, "allocation_id", "") == allocation_id)
        ]

    def lines(self, allocation_id: str) -> dict[int, str]:
        """Return the streamed lines of a worker by their number."""
        lines: dict[int, str] = {}
        for stream in list(self.streamed):
            for printed in stream.printed:
                if printed.allocation_id == allocation_id:
                    lines |= dict(enumerate(printed.lines, printed.first_line))
        return lines

    def answer(self, endpoint: str, message: Any) -> dict[str, Any] | None:
        with self.changed:
            if endpoint != "hello" and message.session_id != self._session:
                raise Refuse(409)
            result = getattr(self, f"_{endpoint}")(message)
            self.changed.notify_all()
            return result  # type: ignore[no-any-return]

    def _hello(self, message: wire.Hello) -> dict[str, Any]:
        self.hellos.append(message)
        self._session = uuid4().hex
        last = self.joined.generation if self.joined else 0
        action = self.action or self._action(message, last)
        return {
            "session_id": self._session,
            "last_generation": last,
            "terms": self.terms,
            "action": action,
        }

    def _action(self, message: wire.Hello, last: int) -> str:
        if message.lapsed:
            return "fence"
        if self.joined is not None and message.incarnation.uuid == self.joined.uuid:
            return "continue"
        return "register" if message.incarnation.generation > last else "fence"

    def _heartbeat(self, message: wire.Heartbeat) -> None:
        self.heartbeats.append(message)

    def _reports(self, message: wire.ReportsRequest) -> dict[str, Any]:
        for n, report in enumerate(message.reports, message.first_n):
            if (message.incarnation.uuid, n) not in self._seen:
                self._seen.add((message.incarnation.uuid, n))
                self.reports.append(report)
                if report.kind == "registration" and self.auto_join:
                    self.join(message.incarnation)
        return {"n": message.first_n + len(message.reports) - 1}

    def drop_session(self) -> None:
        """Forget the session: the agent has to say hello again."""
        self._session = ""
        self.changed.notify_all()

    def join(self, incarnation: wire.Incarnation) -> None:
        """Take a registration as placement would: the orders of an older incarnation go."""
        if self.joined is None or incarnation.generation > self.joined.generation:
            self.joined = incarnation
            self.orders.clear()
            self.order("joined")

    def _orders(self, message: wire.OrdersRequest) -> dict[str, Any]:
        after = (message.after.seq, message.after.index)
        ends = time.monotonic() + min(message.wait_s, 2.0)

        def new() -> list[dict[str, Any]]:
            at = [(o["position"]["seq"], o["position"]["index"]) for o in self.orders]
            return [o for o, place in zip(self.orders, at, strict=True) if place > after]

        while not new() and not self.confirmations and (left := ends - time.monotonic()) > 0:
            self.changed.wait(left)
            if message.session_id != self._session:
                raise Refuse(409)
        orders, self.confirmations = [*self.confirmations, *new()], []
        return {"orders": orders, "through": {"seq": max(self._seq, after[0]), "index": 0}}

    def _stream(self, message: wire.Stream) -> None:
        self.streamed.append(message)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint = self.path.rsplit("/", 1)[1]
                try:
                    if len(body) > double.max_bytes[endpoint]:
                        raise Refuse(413)
                    message = MODELS[endpoint].model_validate_json(body)
                    double.before(endpoint, message)
                    answer = double.answer(endpoint, message)
                    double.after(endpoint, message)
                except Refuse as refusal:
                    self._send(refusal.status, {"reason": "fault", "detail": ""})
                except Vanish:
                    self.close_connection = True
                else:
                    self._send(200, answer)

            def _send(self, status: int, document: object) -> None:
                content = b"" if document is None else json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                try:
                    self.wfile.write(content)
                except ConnectionError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        return Handler
