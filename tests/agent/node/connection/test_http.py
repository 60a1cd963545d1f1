"""Requests to servers that are slow, wrong or hostile."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from berth_agent.messages import Acknowledged, OrdersRequest, Position
from berth_agent.node.connection.http import (
    MAX_BYTES,
    Connection,
    RequestFailed,
    is_loopback,
    parse_address,
)
from tests.patience import PATIENCE_S

BODY = OrdersRequest(session_id="0" * 32, after=Position())
Talk = Callable[[socket.socket], None]


@contextmanager
def a_server(*talks: Talk) -> Iterator[Connection]:
    """A connection to a server that treats its n-th client as the n-th function says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for talk in talks:
                client, _ = listener.accept()
                with client:
                    try:
                        talk(client)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        connection = Connection(parse_address(f"http://127.0.0.1:{port}"), None, "n.s")
        yield connection
        connection.close()
        thread.join(PATIENCE_S)


def request(client: socket.socket) -> bytes:
    """Read one request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += client.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += client.recv(65536)
    return head


def answering(content: bytes, status: str = "200 OK", *headers: str) -> Talk:
    head = "".join(f"{h}\r\n" for h in (f"Content-Length: {len(content)}", *headers))

    def talk(client: socket.socket) -> None:
        request(client)
        client.sendall(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content)

    return talk


def post(connection: Connection, limit_s: float = PATIENCE_S) -> Acknowledged:
    return connection.post("/agent/v1/reports", BODY, Acknowledged, limit_s)


def failure_of(*talks: Talk, limit_s: float = PATIENCE_S) -> RequestFailed:
    with a_server(*talks) as connection:
        with pytest.raises(RequestFailed) as raised:
            post(connection, limit_s)
        return raised.value


def test_an_answer_is_read_and_the_credential_shown() -> None:
    heads = []

    def talk(client: socket.socket) -> None:
        heads.append(request(client))
        client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"n": 3}')

    with a_server(talk) as connection:
        assert post(connection) == Acknowledged(n=3)
    assert b"POST /agent/v1/reports HTTP/1.1" in heads[0]
    assert b"Authorization: Bearer n.s" in heads[0]


def test_a_kept_connection_that_was_closed_is_made_anew() -> None:
    with a_server(answering(b'{"n": 1}'), answering(b'{"n": 2}')) as connection:
        assert post(connection).n == 1
        assert post(connection).n == 2


def test_a_connection_that_an_answer_ends_is_made_anew() -> None:
    closing = answering(b'{"n": 1}', "200 OK", "Connection: close")
    with a_server(closing, answering(b'{"n": 2}')) as connection:
        assert post(connection).n == 1
        assert post(connection).n == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>", "no_answer"),
        (b"\xff\xfe", "no_answer"),
        (b"[" * 100_000, "no_answer"),
        (b'{"n": ' + b"9" * 100_000 + b"}", "no_answer"),
        (b'{"n": -1}', "malformed_answer"),
        (b"", "malformed_answer"),
        (b"x" * (MAX_BYTES + 1), "answer_too_large"),
    ],
    ids=["html", "bytes", "depth", "digits", "value", "empty", "size"],
)
def test_a_wrong_answer_is_a_failure_with_a_reason(content: bytes, reason: str) -> None:
    failure = failure_of(answering(content))
    assert (failure.status, failure.reason) == (0, reason)


def test_no_http_at_all() -> None:
    def talk(client: socket.socket) -> None:
        request(client)
        client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    assert failure_of(talk).reason == "no_answer"


def test_a_server_that_sends_a_byte_now_and_then_is_given_up() -> None:
    """The limit holds for the whole exchange, so the server's loop ends."""

    def talk(client: socket.socket) -> None:
        request(client)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        client.settimeout(0.05)
        while True:
            client.sendall(b"{")
            try:
                if not client.recv(1):
                    return
            except TimeoutError:
                continue

    assert failure_of(talk, limit_s=0.5).reason == "no_answer"


def test_headers_without_end_are_given_up() -> None:
    def talk(client: socket.socket) -> None:
        request(client)
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        for number in range(200):
            client.sendall(f"X-{number}: {'y' * 1000}\r\n".encode())

    assert failure_of(talk).reason == "no_answer"


def test_a_refusal_has_its_reason_and_its_wait() -> None:
    content = b'{"reason": "behind", "detail": "try the next"}'
    failure = failure_of(answering(content, "503 Unavailable", "Retry-After: 7"))
    assert (failure.status, failure.reason, failure.retry_after_s) == (503, "behind", 7.0)
    assert str(failure) == "behind: try the next"


def test_a_proxy_refuses_in_its_own_words() -> None:
    failure = failure_of(answering(b"<html>", "502 Bad Gateway", "Retry-After: soon"))
    assert (failure.status, failure.reason, failure.retry_after_s) == (502, "http_502", 0.0)


def test_a_refused_connection_is_a_failure() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # It does not listen, and no other process gets its port.
        port = held.getsockname()[1]
        connection = Connection(parse_address(f"http://127.0.0.1:{port}"), None, "n.s")
        with pytest.raises(RequestFailed, match="no_answer"):
            post(connection)


def test_a_request_in_flight_is_aborted() -> None:
    arrived = threading.Event()

    def talk(client: socket.socket) -> None:
        request(client)
        arrived.set()
        client.recv(1)

    with a_server(talk) as connection:

        def abort() -> None:
            arrived.wait()
            connection.abort()

        aborter = threading.Thread(target=abort)
        aborter.start()
        with pytest.raises(RequestFailed):
            post(connection)
        aborter.join()


def test_an_ended_connection_sends_nothing_more() -> None:
    """A thread that is between two requests would else begin one for which no session waits."""
    with a_server(answering(b'{"n": 1}')) as connection:
        post(connection)
        connection.end()
        with pytest.raises(RequestFailed, match="ended"):
            post(connection)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://example.org", "without TLS only a loopback address is allowed"),
        ("ftp://localhost", "https://HOST"),
        ("https://", "https://HOST"),
        ("https://host:port", "URL: https://host:port"),
    ],
)
def test_an_address_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_address(url)


def test_addresses_have_the_ports_of_their_schemes() -> None:
    assert parse_address("https://host/base/").port == 443
    assert parse_address("https://host/base/").path == "/base"
    assert parse_address("http://[::1]:80").host == "::1"
    assert is_loopback("localhost") and is_loopback("127.0.0.9") and not is_loopback("10.0.0.1")


def test_a_kept_connection_waits_as_long_as_each_request_allows() -> None:
    def talk(client: socket.socket) -> None:
        for wait_s in (0.0, 3.2):
            request(client)
            time.sleep(wait_s)
            client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"n":5}')

    with a_server(talk) as connection:
        post(connection, 3.0)
        assert post(connection, PATIENCE_S).n == 5
