"""HTTP servers of a test's own, for as long as the test needs them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class Quiet(BaseHTTPRequestHandler):
    """Gives the answer that a test has set, and logs nothing."""

    def received(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers["Content-Length"]))

    def answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


class Double:
    """A server of the handler until `close`, at `url`; several requests are served at once."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def serving(server: HTTPServer | type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yield the address of the server, or of one with that handler, at work within the block."""
    if isinstance(server, type):
        server = ThreadingHTTPServer(("127.0.0.1", 0), server)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving_tls(folder: Path, handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Yield the address of a server of the handler with the certificate `api` of a folder."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api.crt", folder / "api.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server) as url:
        yield url.replace("http:", "https:")


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close the connection and wait for it, whatever the other side does."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
