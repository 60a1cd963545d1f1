"""The HTTP endpoint of every service: `/metrics` for Prometheus and `/health`.

It has no authentication: it belongs on the loopback or in a closed network.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

Health = Callable[[], bool | Mapping[str, object]]
"""True, or a mapping with `ready` and, if that is false, `reason`; called from a thread."""

Pages = Mapping[str, Callable[[], str]]
"""Functions that return the HTML of a page, by path; called from a thread."""

REQUEST_TIMEOUT_S = 5.0
JSON = "application/json"
HTML = "text/html; charset=utf-8"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Pages are self-contained: they load nothing and run no script."""


class MetricsEndpoint:
    """A server in a thread of its own; `port` is the actual port if 0 was requested."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.port: int = server.server_port
        self._thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.2}, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def serve_registry(
    registry: CollectorRegistry, host: str, port: int, health: Health, pages: Pages
) -> MetricsEndpoint:
    """Start the endpoint of a registry."""
    return MetricsEndpoint(_Server(registry, host, port, health, pages))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, registry: CollectorRegistry, host: str, port: int, health: Health, pages: Pages
    ) -> None:
        self.registry, self.health, self.pages = registry, health, pages
        super().__init__((host, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: a client that disconnects is not an error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version, sys_version = "berth", ""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(self.server.registry))
            case "/health":
                report = health_report(self.server.health)
                self._answer(200 if report["ready"] else 503, JSON, json.dumps(report).encode())
            case path if path in self.server.pages:
                self._answer(200, HTML, self.server.pages[path]().encode())
            case _:
                self._answer(404, JSON, b'{"error": "unknown path; use /metrics or /health"}')

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if content_type == HTML:
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""


def health_report(health: Health) -> dict[str, object]:
    """Return `ready`, and a `reason` if it is false; a check that raises counts as not ready."""
    try:
        result = health()
    except Exception as error:
        return {"ready": False, "reason": f"the health check raised {type(error).__name__}"}
    if isinstance(result, Mapping):
        ready = result.get("ready") is True
        return (
            {"reason": "no reason given", **result, "ready": ready} if not ready else dict(result)
        )
    return {"ready": True} if result else {"ready": False, "reason": "not ready"}
