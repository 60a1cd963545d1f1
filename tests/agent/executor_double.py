"""An executor for one node: a real HTTP server that speaks the contract, with faults on demand.

Requests are validated by the contract's own models. The ledger is a list of orders.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import uuid4

from pydantic import BaseModel

from services.executor.agents.http import REQUESTS
from shared.contracts import agents as wire
from shared.contracts.bundles import Manifest
from tests.patience import PATIENCE_S
from tests.serving import Double, Quiet

MODELS: dict[str, type[BaseModel]] = {
    "hello": wire.Hello,
    "heartbeat": wire.Heartbeat,
    "orders": wire.OrdersRequest,
    "reports": wire.ReportsRequest,
    "stream": wire.Stream,
    "bundle": wire.BundleRequest,
    "part": wire.BundlePartRequest,
}
Fault = Callable[[str, BaseModel], None]


class Refuse(Exception):
    """Raised by a fault: answer with this status."""

    def __init__(self, status: int) -> None:
        self.status = status


class Vanish(Exception):
    """Raised by a fault: close the connection without an answer."""


class ExecutorDouble(Double):
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
        self.max_bytes = {name: request.max_bytes for name, request in REQUESTS.items()}
        """Largest body of a request, as the executor has it."""
        self.orders: list[dict[str, Any]] = []
        self.confirmations: list[dict[str, Any]] = []
        self.reports: list[Any] = []
        """Reports by incarnation and number, each once."""
        self.hellos: list[wire.Hello] = []
        self.heartbeats: list[wire.Heartbeat] = []
        self.streamed: list[wire.Stream] = []
        self.executors: tuple[str, ...] = ()
        """Addresses that it names in its welcome."""
        self.installation: str | None = None
        """The id that it names in its welcome; None: it is an older one, which names none."""
        self.joined: wire.Incarnation | None = None
        self.writer = "w1"
        """The process that writes the ledger."""
        self.credential: str | None = None
        """The only credential that is valid; None: each is."""
        self.action: str | None = None
        """Forced action of the next hellos."""
        self.auto_join = True
        self.before: Fault = lambda endpoint, message: None
        self.after: Fault = lambda endpoint, message: None
        """Faults before and after a request has its effect."""
        self.bundle: Manifest | None = None
        """The manifest of the bundle of every worker; None: it has none."""
        self.parts: list[str] = []
        """The parts of the bundle, in base64."""
        self.parts_away = False
        self.part_requests = 0
        self._session = ""
        self._seen: set[tuple[str, int]] = set()
        self._seq = 1
        super().__init__(self._handler())

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

    def wait(self, reached: Callable[[], bool]) -> None:
        """Wait for a fact about what was received."""
        with self.changed:
            assert self.changed.wait_for(reached, PATIENCE_S), f"not reached: {self.reports}"

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
        self.confirmations += self._forgotten(message)
        self._session = uuid4().hex
        last = self.joined.generation if self.joined else 0
        action = self.action or self._action(message, last)
        return {
            "session_id": self._session,
            "last_generation": last,
            "terms": self.terms,
            "action": action,
            "executors": self.executors,
            **({} if self.installation is None else {"installation": self.installation}),
        }

    def _forgotten(self, message: wire.Hello) -> list[dict[str, Any]]:
        """Return the orders that the agent has noted and did not carry out before it died."""
        held = {step.allocation_id for step in message.steps}
        return [
            order
            for order in self.orders
            if order["kind"] == "forget"
            and order["allocation_id"] in held
            and order["position"]["seq"] <= message.applied.seq
        ]

    def _action(self, message: wire.Hello, last: int) -> str:
        if message.lapsed or message.applied.seq > self._seq:
            return "fence"
        if message.writer not in ("", self.writer):
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

    def follow(self, other: ExecutorDouble) -> None:
        """Read the ledger that the other executor has read so far."""
        with self.changed:
            self.joined, self._seq = other.joined, other._seq
            self.orders = list(other.orders)

    def restore(self, orders: int) -> None:
        """Keep the first orders of the ledger, as a restore from a backup does."""
        with self.changed:
            del self.orders[orders:]
            self._seq = self.orders[-1]["position"]["seq"]
            self.writer = "w2"
            self.drop_session()

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
        through = {"seq": max(self._seq, after[0]), "index": 0}
        return {"orders": orders, "through": through, "writer": self.writer}

    def _stream(self, message: wire.Stream) -> None:
        self.streamed.append(message)

    def _bundle(self, message: wire.BundleRequest) -> dict[str, Any]:
        if self.bundle is None:
            raise Refuse(404)
        return self.bundle.model_dump(mode="json")

    def _part(self, message: wire.BundlePartRequest) -> dict[str, Any]:
        self.part_requests += 1
        if self.parts_away:
            raise Refuse(503)
        return {"base64": self.parts[message.index]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        double = self

        class Handler(Quiet):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.received()
                endpoint = self.path.rsplit("/", 1)[1]
                try:
                    if len(body) > double.max_bytes[endpoint]:
                        raise Refuse(413)
                    if double.credential not in (None, self.headers["Authorization"][7:]):
                        raise Refuse(401)
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
                try:
                    self.answer(status, content)
                except ConnectionError:
                    self.close_connection = True

        return Handler
