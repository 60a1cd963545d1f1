"""A WebSocket to an executor, of one thread, whose both directions may be held up apart."""

from __future__ import annotations

import base64
import hashlib
import os
import select
import socket
import ssl
import struct
from collections.abc import Iterator

from berth_agent.node.connection.http import Address, open_socket, refusal_of

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_MESSAGE = 128 * 1024
MAX_HEAD = 16 * 1024
READ_BYTES = 64 * 1024
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 3))
"""A peer that is cut off is noticed within a minute; one that only reads slowly stays."""


class Closed(Exception):
    """The other side has closed the connection, or speaks something else."""


class WebSocket:
    """An open connection. Nothing blocks but `__init__`."""

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        path: str,
        headers: dict[str, str],
        limit_s: float,
    ) -> None:
        """Connect. Raises OSError, RequestFailed for a refusal, Closed for no WebSocket."""
        opened: list[socket.socket] = []
        try:
            self._socket = open_socket(address, tls, limit_s, opened.append)
            self._received = bytearray()
            self._to_send = bytearray()
            self._greet(address, path, headers)
        except BaseException:
            for one in opened:
                one.close()
            raise
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE:
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that the other side has not taken."""
        return len(self._to_send)

    @property
    def events(self) -> int:
        """Events to poll for."""
        return select.POLLIN | (select.POLLOUT if self._to_send else 0)

    @property
    def has_pending(self) -> bool:
        """Return whether TLS holds bytes that no poll shows."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def send(self, payload: bytes) -> None:
        """Send a message, or keep it until the other side takes it. Raises OSError."""
        self._add(BINARY, payload)
        self.flush()

    def flush(self) -> None:
        """Send what is kept. Raises OSError."""
        while self._to_send:
            try:
                sent = self._socket.send(bytes(self._to_send[:READ_BYTES]))
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            del self._to_send[:sent]

    def receive(self) -> list[bytes]:
        """Return the messages that are here. Raises Closed, OSError."""
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return []
        if not data:
            raise Closed("the connection is closed")
        self._received += data
        return list(self._messages())

    def close(self) -> None:
        """Say so if that is possible at once, and close."""
        try:
            self._add(CLOSE, struct.pack(">H", 1000))
            self.flush()
        except OSError:
            pass
        self._socket.close()

    def _messages(self) -> Iterator[bytes]:
        """Yield whole messages, and answer pings. Raises Closed."""
        while (frame := self._take_frame()) is not None:
            kind, payload = frame
            if kind == CLOSE:
                raise Closed("closed by the executor")
            if kind == PING:
                self._add(PONG, payload)
                self.flush()
            elif kind in (BINARY, TEXT):
                yield payload

    def _take_frame(self) -> tuple[int, bytes] | None:
        received = self._received
        if len(received) < 2:
            return None
        if not received[0] & 0x80 or received[0] & 0x70 or received[1] & 0x80:
            raise Closed("a frame that is split, extended or masked")
        length, begin = received[1] & 0x7F, 2
        if length >= 126:
            begin += 2 if length == 126 else 8
            if len(received) < begin:
                return None
            length = int.from_bytes(received[2:begin], "big")
        if length > MAX_MESSAGE:
            raise Closed(f"a message of {length} bytes; {MAX_MESSAGE} are allowed")
        if len(received) < begin + length:
            return None
        kind, payload = received[0] & 0x0F, bytes(received[begin : begin + length])
        del received[: begin + length]
        return kind, payload

    def _add(self, kind: int, payload: bytes) -> None:
        """Add a frame; a client masks it."""
        length = len(payload)
        if length < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | length)
        elif length < 65536:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, length)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, length)
        mask = os.urandom(4)
        repeated = (mask * (length // 4 + 1))[:length]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
        self._to_send += head + mask + masked.to_bytes(length, "big")

    def _greet(self, address: Address, path: str, headers: dict[str, str]) -> None:
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {address.path}{path} HTTP/1.1", f"Host: {address.host}:{address.port}"]
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        lines += [f"Sec-WebSocket-Key: {key.decode()}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._received:
            data = self._socket.recv(READ_BYTES)
            if not data or len(self._received) > MAX_HEAD:
                raise Closed("no answer of an executor")
            self._received += data
        head, _, rest = bytes(self._received).partition(b"\r\n\r\n")
        status, *fields = head.decode("latin-1").split("\r\n")
        words = status.split(" ")
        code = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
        if code != 101:
            raise refusal_of(code, rest, "")
        answer = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
        if not any(_is_field(field, "sec-websocket-accept", answer) for field in fields):
            raise Closed("the answer is no WebSocket's")
        self._received = bytearray(rest)


def _is_field(line: str, name: str, value: str) -> bool:
    field, _, content = line.partition(":")
    return field.strip().lower() == name and content.strip() == value
