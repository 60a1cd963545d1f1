"""A server between an agent and its executor: it records their session, and plays it back."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shared.contracts.agents import AGENT_API
from tests.patience import PATIENCE_S

Json = dict[str, Any]
WAIT_S = 0.5
"""Longest wait of a poll for orders: the next one is soon there."""
SENT = ("heartbeat", "reports", "hello")
"""Requests that change something; a hello is repeated last, as it ends the session."""


class Exchange(NamedTuple):
    """A request of the agent, and the answer to it."""

    endpoint: str
    request: Json
    answer: Json


class Recorder:
    """Passes requests on to the executor at `url`, and notes those that it accepts."""

    def __init__(self, url: str) -> None:
        self._executor = urlsplit(url).netloc
        self._changed = threading.Condition()
        self._exchanges: list[Exchange] = []
        self._credential = ""
        self._to_play: list[Json] = []
        self._polls = 0
        """Polls for orders that were passed on since the last answer was played."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def orders(self) -> list[Json]:
        """Return the recorded answers that hold orders."""
        with self._changed:
            polls = [e.answer for e in self._exchanges if e.endpoint == "orders"]
        return [answer for answer in polls if answer["orders"]]

    def sent(self) -> list[Exchange]:
        """Return what the agent sent, in the order in which it is repeated."""
        with self._changed:
            return sorted(
                (e for e in self._exchanges if e.endpoint in SENT),
                key=lambda exchange: SENT.index(exchange.endpoint),
            )

    def play(self, answers: Iterable[Json]) -> None:
        """Give the agent these orders instead of new ones; wait until it has dealt with them."""
        with self._changed:
            self._to_play = list(answers)
            assert self._changed.wait_for(lambda: not self._to_play and self._polls, PATIENCE_S)

    def repeat(self, sent: Iterable[Exchange]) -> None:
        """Send the executor these requests again, in the present session."""
        for endpoint, request, _ in sent:
            with self._changed:
                hellos = [e for e in self._exchanges if e.endpoint == "hello"]
            body = {**request, "session_id": hellos[-1].answer["session_id"]}
            if endpoint == "hello":
                del body["session_id"]
            status, _ = self._pass_on(f"{AGENT_API}/{endpoint}", body)
            assert status < http.client.INTERNAL_SERVER_ERROR, (endpoint, request)

    def _pass_on(self, path: str, body: Json) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._executor, timeout=PATIENCE_S)
        headers = {"Content-Type": "application/json", "Authorization": self._credential}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _exchange(self, path: str, body: Json) -> tuple[int, bytes]:
        endpoint = path.rsplit("/", 1)[1]
        if endpoint == "orders":
            body["wait_s"] = WAIT_S
            with self._changed:
                if self._to_play:
                    self._polls = 0
                    return http.client.OK, json.dumps(self._to_play.pop(0)).encode()
                self._polls += 1
                self._changed.notify_all()
        status, content = self._pass_on(path, body)
        if status == http.client.OK:
            with self._changed:
                self._exchanges.append(Exchange(endpoint, body, json.loads(content or b"{}")))
        return status, content

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                recorder._credential = self.headers["Authorization"]
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, content = recorder._exchange(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        return Handler


@contextmanager
def a_recorder(url: str) -> Iterator[Recorder]:
    recorder = Recorder(url)
    try:
        yield recorder
    finally:
        recorder.close()
