"""A way to a server of S3 on which requests and answers are cut, refused or delayed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

NONE, REFUSED, REQUEST_CUT, ANSWER_LOST, ANSWER_CUT, SLOW = (
    "",
    "503",
    "request cut",
    "answer lost",
    "answer cut",
    "slow",
)
SLOW_S = 0.3
OWN_HEADERS = ("connection", "date", "server", "transfer-encoding", "content-length")


class FaultyServer(ThreadingHTTPServer):
    """Passes requests on to `endpoint`; each takes the next of the faults, later ones none."""

    daemon_threads = True

    def __init__(self, endpoint: str, faults: Iterable[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = urlsplit(endpoint).netloc
        self._faults = iter(faults)
        self._taking = threading.Lock()
        self.met: list[str] = []
        """The faults that requests have met."""

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_fault(self) -> str:
        with self._taking:
            fault = next(self._faults, NONE)
            if fault:
                self.met.append(fault)
            return fault


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyServer

    def _pass_on(self) -> None:
        fault = self.server.next_fault()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if fault == REFUSED:
            self._answer(503, {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        if fault == SLOW:
            time.sleep(SLOW_S)
        self.close_connection = fault in (REQUEST_CUT, ANSWER_LOST, ANSWER_CUT)
        if fault == REQUEST_CUT:
            return
        status, headers, answer = self._ask(body)
        if fault != ANSWER_LOST:
            self._answer(status, headers, answer, is_cut=fault == ANSWER_CUT)

    do_GET = do_PUT = do_HEAD = _pass_on

    def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        upstream = HTTPConnection(self.server.upstream)
        try:
            upstream.request(self.command, self.path, body or None, dict(self.headers))
            answer = upstream.getresponse()
            headers = {k: v for k, v in answer.getheaders() if k.lower() not in OWN_HEADERS}
            return answer.status, headers, answer.read()
        finally:
            upstream.close()

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, *, is_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def faulty(endpoint: str, faults: Iterable[str]) -> Iterator[FaultyServer]:
    """Serve on a port of its own."""
    server = FaultyServer(endpoint, faults)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
