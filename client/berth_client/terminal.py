"""A terminal in a worker of a job: one request, whose two directions go on at the same time.

See `POST /v1/jobs/{job_id}/terminal`. It is used by one thread, which polls `fileno`.
"""

from __future__ import annotations

import json
import select
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from berth_client.errors import NO_ANSWER, BerthError
from berth_client.installation import InstallationAddress
from berth_client.transport import BAD_ADDRESS, NOT_BERTH, UNTRUSTED, problem_of, trust_of

MEDIA = "application/vnd.berth.terminal"
OPENING, STDIN, STDIN_END, WINDOW = b"H", b"I", b"E", b"W"
STDOUT, STDERR, ALIVE, END = b"O", b"R", b"P", b"X"
HEAD_BYTES = 5
CONNECT_S = 15.0
OPEN_S = 60.0
"""Longest s until the program runs: the gateway gives its node 40 s."""
READ_BYTES = 64 * 1024
MAX_HEAD = 64 * 1024


class Chunks:
    """The body of an answer, of which `Transfer-Encoding: chunked` may hold parts of any size."""

    def __init__(self, chunked: bool, received: bytes) -> None:
        self._chunked = chunked
        self._raw = bytearray(received)
        self._left = 0
        self.over = False

    def take(self, data: bytes) -> bytes:
        """Return what the bytes, and those before them, add to the body. Raises ValueError."""
        self._raw += data
        if not self._chunked:
            taken = bytes(self._raw)
            self._raw.clear()
            return taken
        body = bytearray()
        while not self.over:
            if not self._left:
                line, ending, _ = self._raw.lstrip(b"\r\n").partition(b"\r\n")
                if not ending:
                    break
                begin = len(self._raw) - len(self._raw.lstrip(b"\r\n"))
                self._left = int(bytes(line).partition(b";")[0], 16)
                del self._raw[: begin + len(line) + 2]
                self.over = not self._left
            else:
                part = self._raw[: self._left]
                if not part:
                    break
                body += part
                self._left -= len(part)
                del self._raw[: len(part)]
        return bytes(body)


class Terminal:
    """An open terminal. Nothing blocks but `__init__`, which returns once its program runs."""

    def __init__(
        self, installation: InstallationAddress, job_id: str, opening: Mapping[str, object]
    ) -> None:
        """Open it. Raises BerthError."""
        self._unsent = bytearray()
        self._frames = bytearray()
        self._url = installation.url
        self._socket = self._connect(installation)
        try:
            self._socket.settimeout(OPEN_S)
            self._socket.sendall(self._head(installation, job_id))
            self.send(OPENING, json.dumps(dict(opening)).encode())
            self._socket.sendall(self._unsent)
            self._unsent.clear()
            self._body = self._answer()
        except OSError as error:
            self._socket.close()
            raise self._lost(error) from error
        except BaseException:
            self._socket.close()
            raise
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that the gateway has not taken."""
        return len(self._unsent)

    @property
    def has_pending(self) -> bool:
        """Return whether TLS holds bytes that no poll shows."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    @property
    def events(self) -> int:
        """Events to poll for."""
        return select.POLLIN | (select.POLLOUT if self._unsent else 0)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Keep a frame until it is flushed."""
        frame = kind + len(payload).to_bytes(4, "big") + payload
        self._unsent += f"{len(frame):x}\r\n".encode() + frame + b"\r\n"

    def flush(self) -> None:
        """Send what the gateway takes now. Raises BerthError."""
        while self._unsent:
            try:
                sent = self._socket.send(bytes(self._unsent[:READ_BYTES]))
            except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                return
            except OSError as error:
                raise self._cut(error) from error
            del self._unsent[:sent]

    def receive(self) -> list[tuple[bytes, bytes]]:
        """Return kinds and payloads of the frames that are here. Raises BerthError."""
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return []
        except OSError as error:
            raise self._cut(error) from error
        if not data:
            raise self._cut(None)
        self._frames += self._body.take(data)
        return self._whole_frames()

    def close(self) -> None:
        """End the terminal, and with it what runs in it."""
        self._socket.close()

    def _whole_frames(self) -> list[tuple[bytes, bytes]]:
        whole = []
        while len(self._frames) >= HEAD_BYTES:
            end = HEAD_BYTES + int.from_bytes(self._frames[1:HEAD_BYTES], "big")
            if len(self._frames) < end:
                break
            whole.append((bytes(self._frames[:1]), bytes(self._frames[HEAD_BYTES:end])))
            del self._frames[:end]
        return whole

    def _connect(self, installation: InstallationAddress) -> socket.socket:
        address = urlsplit(installation.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            detail = f"invalid address: {installation.url!r}; must be http or https"
            raise BerthError(0, BAD_ADDRESS, detail)
        trust = trust_of(installation)
        port = address.port or (443 if address.scheme == "https" else 80)
        connected: socket.socket | None = None
        try:
            connected = socket.create_connection((address.hostname, port), CONNECT_S)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if isinstance(trust, ssl.SSLContext):
                return trust.wrap_socket(connected, server_hostname=address.hostname)
            return connected
        except OSError as error:
            if connected is not None:
                connected.close()
            raise self._lost(error) from error

    def _head(self, installation: InstallationAddress, job_id: str) -> bytes:
        address = urlsplit(installation.url)
        path = f"{address.path.rstrip('/')}/v1/jobs/{quote(job_id, safe='')}/terminal"
        lines = [f"POST {path} HTTP/1.1", f"Host: {address.netloc.rpartition('@')[2]}"]
        lines += [f"Content-Type: {MEDIA}", "Transfer-Encoding: chunked", "Connection: close"]
        lines += [f"Accept: {MEDIA}, application/json"]
        lines += [f"Authorization: Bearer {installation.key}"] if installation.key else []
        return "\r\n".join([*lines, "", ""]).encode()

    def _answer(self) -> Chunks:
        """Read the head of the answer; return its body. Raises BerthError, OSError."""
        received = bytearray()
        while b"\r\n\r\n" not in received:
            data = self._socket.recv(READ_BYTES)
            if not data or len(received) > MAX_HEAD:
                raise BerthError(0, NO_ANSWER, f"{self._url}: closed without an answer")
            received += data
        head, _, rest = bytes(received).partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        words = status.split(" ")
        code = int(words[1]) if len(words) > 1 and words[1].isdecimal() else 0
        body = Chunks(headers.get("transfer-encoding", "").lower() == "chunked", rest)
        if code != 200:
            raise problem_of(code, self._whole(body, headers), headers)
        if headers.get("content-type") != MEDIA:
            detail = "response is no terminal: is this the address of a Berth API?"
            raise BerthError(200, NOT_BERTH, detail)
        self._frames += body.take(b"")
        return body

    def _whole(self, body: Chunks, headers: Mapping[str, str]) -> bytes:
        content, length = body.take(b""), int(headers.get("content-length") or MAX_HEAD)
        while not body.over and len(content) < length:
            data = self._socket.recv(READ_BYTES)
            if not data:
                break
            content += body.take(data)
        return content

    def _cut(self, error: OSError | None) -> BerthError:
        why = f": {error}" if error else ""
        return BerthError(0, NO_ANSWER, f"{self._url}: the terminal was cut off{why}")

    def _lost(self, error: OSError) -> BerthError:
        is_untrusted = isinstance(error, ssl.SSLCertVerificationError)
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error)
        code = UNTRUSTED if is_untrusted else NO_ANSWER
        return BerthError(0, code, f"{self._url} is not reachable: {reason}")
