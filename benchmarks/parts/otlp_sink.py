"""An OTLP/HTTP endpoint in a process of its own, so that its CPU is not the sender's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class AcceptEverything(BaseHTTPRequestHandler):
    """Handler that reads each body and answers 200; connections stay open."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


@contextmanager
def otlp_sink() -> Iterator[str]:
    """Yield the URL of an endpoint that is stopped at the end."""
    command = [sys.executable, "-m", "benchmarks.parts.otlp_sink"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), AcceptEverything)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
