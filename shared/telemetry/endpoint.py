"""The small HTTP endpoint of every service: `/metrics` for Prometheus, `/health` for all others.

Who may reach it may read it: it belongs on the loopback, or into a closed network.
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
"""Path -> what makes its HTML; called from a thread."""

REQUEST_TIMEOUT_S = 5.0
JSON = "application/json"
HTML = "text/html; charset=utf-8"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A page brings everything along: it loads nothing and runs nothing."""


class MetricsEndpoint:
    """Serves until it is closed; `port` is the real one where 0 was asked for."""

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
        """A scraper that hangs up is its own business."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_TIMEOUT_S
    server_version, sys_version = "berth", ""

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, CONTENT_TYPE_LATEST, generate_latest(self.server.registry))
            case "/health":
                said = _asked(self.server.health)
                self._answer(200 if said["ready"] else 503, JSON, json.dumps(said).encode())
            case path if path in self.server.pages:
                self._answer(200, HTML, self.server.pages[path]().encode())
            case _:
                self._answer(404, JSON, b'{"error": "there are /metrics and /health"}')

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if content_type == HTML:
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape every few seconds is no news."""


def _asked(health: Health) -> dict[str, object]:
    """A check that raises is a service that is not ready; it must still be answered."""
    try:
        said = health()
    except Exception as error:
        return {"ready": False, "reason": f"the health check raised {type(error).__name__}"}
    if isinstance(said, Mapping):
        ready = said.get("ready") is True
        return {"reason": "no reason given", **said, "ready": ready} if not ready else dict(said)
    return {"ready": True} if said else {"ready": False, "reason": "not ready"}
