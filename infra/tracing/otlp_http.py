"""A small OTLP/HTTP receiver on the standard library."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BODY_BYTES = 8 << 20

Take = Callable[[bytes, str, str], int]
"""Handler of (body, content type, content encoding); returns the HTTP status."""


def receiver(take: Take, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
    """Return a server for `POST /v1/traces`; an empty host means all addresses."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            if self.path != "/v1/traces" or size > MAX_BODY_BYTES:
                # The body is not read, so the connection cannot go on.
                self.close_connection = True
                self._answer(404 if size <= MAX_BODY_BYTES else 413, "text/plain")
                return
            body = self.rfile.read(size)
            kind = self.headers.get("Content-Type", "")
            self._answer(take(body, kind, self.headers.get("Content-Encoding", "")), kind)

        def _answer(self, status: int, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing per request."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    return server
