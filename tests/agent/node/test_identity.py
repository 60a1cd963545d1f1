"""A renewal keeps what belongs to the node."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from berth_agent.node.identity import Identity, prepare_renewal, renew

GIVEN = ("https://executor.example:8444",)
OFFERED = ("https://other.example:8444",)


class Gateway(BaseHTTPRequestHandler):
    """Answers each renewal with other addresses of executors."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        joined = {"node_id": "n1", "pool": "gpu", "approved": True, "expires_at": 9}
        body = json.dumps({**joined, "executors": OFFERED}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def a_gateway() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Gateway) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("is_own", "kept"), [(True, GIVEN), (False, OFFERED)])
def test_addresses_given_at_the_join_outlive_a_renewal(is_own: bool, kept: tuple[str, ...]) -> None:
    with a_gateway() as url:
        identity = Identity("n1", "gpu", "s", url, GIVEN, 1, True, "", has_own_executors=is_own)
        prepared = prepare_renewal(identity)
        renewed = renew(prepared)
    assert renewed.executors == kept and renewed.secret == prepared.next_secret
