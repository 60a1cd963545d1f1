"""Requests to a server that may be slow, wrong or hostile: limited in time and in size."""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import urlsplit

from berth_agent.linux.clocks import wall_ms
from berth_agent.messages import RequestProblem
from berth_agent.reading import Json, MalformedMessage, Message

MAX_BYTES = 32 * 1024 * 1024
MAX_PROBLEM_BYTES = 64 * 1024
ENDED = "ended"
"""Reason of a failed request: another thread of this process has ended the connection."""
M = TypeVar("M", bound=Message)


class RequestFailed(Exception):
    """No usable answer: status 0 if there was none at all."""

    def __init__(self, status: int, reason: str, detail: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL of an executor or a gateway."""

    scheme: str
    host: str
    port: int
    path: str


def parse_address(url: str) -> Address:
    """Parse a base URL. Raises ValueError: only loopback may do without TLS."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"URL: {url[:200]}; {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"URL: {url[:200]}; https://HOST[:PORT] is allowed")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"URL: {url[:200]}; without TLS only a loopback address is allowed")
    default = 443 if parts.scheme == "https" else 80
    return Address(parts.scheme, host, port or default, parts.path.rstrip("/"))


def is_address(url: str) -> bool:
    """Return whether `parse_address` takes the URL."""
    try:
        parse_address(url)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tls_context(ca: str | None) -> ssl.SSLContext:
    """Trust the installation's CA alone, or the system's. Raises OSError."""
    return ssl.create_default_context(cafile=ca)


def open_socket(
    address: Address,
    tls: ssl.SSLContext | None,
    limit_s: float,
    note: Callable[[socket.socket], None],
) -> socket.socket:
    """Connect; each socket is noted before more is done by it. Raises OSError."""
    connected = socket.create_connection((address.host, address.port), limit_s)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    note(connected)
    if tls is not None and address.scheme == "https":
        secure = tls.wrap_socket(
            connected, server_hostname=address.host, do_handshake_on_connect=False
        )
        note(secure)
        secure.do_handshake()
        connected = secure
    connected.settimeout(limit_s)
    return connected


class Connection:
    """One kept connection; used by one thread, `abort` and `end` may be called by any."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, credential: str) -> None:
        self._address = address
        self._tls = tls
        self._credential = credential
        self._connection: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._aborted = self._ended = False

    def post(self, path: str, body: Message, answer: type[M], limit_s: float) -> M:
        """Post a message and read the answer. Raises RequestFailed."""
        document = self.exchange(path, body.to_json(), limit_s)
        try:
            return answer.from_json(document)
        except MalformedMessage as error:
            self.close()
            raise RequestFailed(0, "malformed_answer", str(error)) from None

    def exchange(self, path: str, body: dict[str, Json], limit_s: float) -> object:
        """Post a JSON document; return that of the answer, None if it is empty.

        Raises RequestFailed. The limit holds for the whole exchange, whatever the server does.
        """
        if self._ended:
            raise RequestFailed(0, ENDED, "the session has ended")
        timer = threading.Timer(limit_s, self.abort)
        timer.daemon = True
        self._aborted = False
        timer.start()
        try:
            return self._exchange(path, json.dumps(body, allow_nan=False).encode(), limit_s)
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            self.close()
            if self._ended:
                raise RequestFailed(0, ENDED, "the session has ended") from None
            detail = f"{self._address.host}:{self._address.port}: {error or type(error).__name__}"
            rule = f"; {certificate_rule(str(error))}" if _is_unverified(error) else ""
            raise RequestFailed(0, "no_answer", detail[:300] + rule) from None
        except RequestFailed as failure:
            if failure.status in (0, 413):
                self.close()
            raise
        finally:
            timer.cancel()

    def abort(self) -> None:
        """End a request that is in flight: its thread gets an error."""
        self._aborted = True
        connected = self._socket
        if connected is not None:
            try:
                connected.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def end(self) -> None:
        """End a request that is in flight, and refuse later ones: its thread may be between two."""
        self._ended = True
        self.abort()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._socket is not None:
            # Without a connection yet, where TLS failed.
            self._socket.close()
        self._connection = self._socket = None

    def _exchange(self, path: str, body: bytes, limit_s: float) -> object:
        response = self._request(path, body, limit_s)
        success = 200 <= response.status < 300
        limit = MAX_BYTES if success else MAX_PROBLEM_BYTES
        content = response.read(limit + 1)
        if len(content) > limit:
            raise RequestFailed(0, "answer_too_large", f"more than {limit} bytes")
        if not success:
            raise refusal_of(response.status, content, response.headers.get("Retry-After", ""))
        return json.loads(content) if content.strip() else None

    def _request(self, path: str, body: bytes, limit_s: float) -> http.client.HTTPResponse:
        """Send a request; a kept connection that the server has closed is made anew, once."""
        if self._connection is not None and self._connection.sock is None:
            # Its last answer said that it closes; http.client would connect again without TLS.
            self.close()
        kept = self._connection
        if self._socket is not None:
            self._socket.settimeout(limit_s)
        try:
            return self._send(kept or self._connect(limit_s), path, body)
        except (ConnectionError, http.client.RemoteDisconnected):
            if kept is None or self._aborted or self._ended:
                raise
        self.close()
        return self._send(self._connect(limit_s), path, body)

    def _send(
        self, connection: http.client.HTTPConnection, path: str, body: bytes
    ) -> http.client.HTTPResponse:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._credential}",
        }
        connection.request("POST", self._address.path + path, body, headers)
        return connection.getresponse()

    def _note_socket(self, connected: socket.socket) -> None:
        self._socket = connected
        if self._ended:
            raise ConnectionAbortedError("the session has ended")

    def _connect(self, limit_s: float) -> http.client.HTTPConnection:
        """Connect; the socket is known before TLS begins, so that it can be aborted there."""
        address = self._address
        open_socket(address, self._tls, limit_s, self._note_socket)
        connection = http.client.HTTPConnection(address.host, address.port)
        connection.sock = self._socket
        self._connection = connection
        return connection


def _is_unverified(error: Exception) -> bool:
    return isinstance(error, ssl.SSLCertVerificationError)


def certificate_rule(text: str) -> str:
    """Return what to do about a server's certificate that was refused with this text.

    It is the same for a day, as a problem is logged when it changes.
    """
    day = datetime.fromtimestamp(wall_ms() / 1000, UTC).date()
    if "not yet valid" in text:
        return f"the clock of this node says {day} (UTC): correct it, see `timedatectl`"
    if "expired" in text:
        return f"the clock of this node says {day} (UTC); if it is right, the server needs another"
    if "mismatch" in text or "not valid for" in text:
        return "the certificate is for other names: use one of them as the address"
    return "its CA is not trusted here: `berth-agent join ... --ca FILE` names the installation's"


def refusal_of(status: int, content: bytes, retry_after: str) -> RequestFailed:
    """Read the problem of a refusal, whatever stands in between wrote."""
    try:
        problem = RequestProblem.from_json(json.loads(content))
    except (ValueError, RecursionError):
        problem = RequestProblem(reason=f"http_{status}", detail="")
    wait_s = float(retry_after) if retry_after.isdecimal() and len(retry_after) < 6 else 0.0
    return RequestFailed(status, problem.reason, problem.detail, wait_s)
