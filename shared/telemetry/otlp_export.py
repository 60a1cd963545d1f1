"""Sends batches of spans to an OTLP/HTTP address in bounded time and memory; it may drop spans."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from shared.telemetry.otlp_encode import Encoder

REQUEST_TIMEOUT_S = 5.0
RETRY_FOR_S = 10.0
RETRY_EVERY_S = 0.25
RETRYABLE = frozenset({429, 502, 503, 504})

Outcome = Literal["sent", "again", "refused"]


class OtlpExporter(SpanExporter):
    """Exports in the batch processor's thread, over one persistent connection."""

    def __init__(
        self,
        otlp_url: str,
        encoder: Encoder,
        on_batch: Callable[[int, bool], None],
        ca: Path | None = None,
    ) -> None:
        """`on_batch(spans, sent)` receives each outcome; `ca` signs the server's certificate."""
        self._address = urlsplit(otlp_url.rstrip("/") + "/v1/traces")
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise ValueError(f"not an OTLP/HTTP address: {otlp_url}; use http://host:port")
        self._trust = _trust(ca) if self._address.scheme == "https" else None
        self._encoder = encoder
        self._on_batch = on_batch
        self._connection: HTTPConnection | None = None
        self._closing = threading.Event()
        self._give_up_at = float("inf")
        self._cutter: threading.Timer | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        sent = False
        try:
            sent = self._send(self._encoder.encode(spans))
        finally:
            self._on_batch(len(spans), sent)
        return SpanExportResult.SUCCESS if sent else SpanExportResult.FAILURE

    def close_within(self, timeout_s: float) -> None:
        """Stop retrying, and abort a request that is still in flight after the timeout."""
        self._give_up_at = time.monotonic() + timeout_s
        self._closing.set()
        self._cutter = threading.Timer(timeout_s, self._cut)
        self._cutter.daemon = True
        self._cutter.start()

    def shutdown(self) -> None:
        if self._cutter is not None:
            self._cutter.cancel()
        self._disconnect()

    def _cut(self) -> None:
        """Wake the exporting thread, which may be blocked on a response."""
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _send(self, body: bytes) -> bool:
        until = time.monotonic() + RETRY_FOR_S
        while (remaining_s := self._give_up_at - time.monotonic()) > 0:
            outcome = self._post(body, min(REQUEST_TIMEOUT_S, remaining_s))
            if outcome != "again":
                return outcome == "sent"
            if time.monotonic() > until or self._closing.wait(RETRY_EVERY_S):
                return False
        return False

    def _post(self, body: bytes, timeout_s: float) -> Outcome:
        try:
            connection = self._connected(timeout_s)
            headers = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", self._address.path, body, headers)
            response = connection.getresponse()
            response.read()
        except (OSError, HTTPException):
            self._disconnect()
            return "again"
        if response.status < 300:
            return "sent"
        return "again" if response.status in RETRYABLE else "refused"

    def _connected(self, timeout_s: float) -> HTTPConnection:
        if self._connection is None:
            netloc = self._address.netloc
            if self._trust is None:
                self._connection = HTTPConnection(netloc, timeout=timeout_s)
            else:
                self._connection = HTTPSConnection(netloc, timeout=timeout_s, context=self._trust)
        self._connection.timeout = timeout_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _trust(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        reason = error.strerror if not isinstance(error, ssl.SSLError) else "no certificate in PEM"
        raise ValueError(f"{ca}: {reason}") from None
