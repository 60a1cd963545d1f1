"""Forwards batches of spans to an address, in order, from a thread with a bounded queue."""

from __future__ import annotations

import queue
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request

QUEUE_BATCHES = 1000
RETRY_FOR_S = 120.0
RETRY_S = 1.0
SEND_S = 5.0

Batch = tuple[bytes, str, str]
"""Body, content type and content encoding."""


class Forward:
    """A forwarder; overflow and refused batches are counted and dropped."""

    def __init__(self, address: str, ca: str | None = None) -> None:
        """Create a forwarder; `ca` is the authority's file for an https address."""
        self._address = address
        self._trust = ssl.create_default_context(cafile=ca)
        self._waiting: queue.Queue[Batch] = queue.Queue(QUEUE_BATCHES)
        self.lost = 0
        threading.Thread(target=self._run, name=address, daemon=True).start()

    def put(self, batch: Batch) -> None:
        try:
            self._waiting.put_nowait(batch)
        except queue.Full:
            self._lose("the queue is full")

    def _run(self) -> None:
        while True:
            batch = self._waiting.get()
            ends = time.monotonic() + RETRY_FOR_S
            while (problem := self._send(batch)) and time.monotonic() < ends:
                time.sleep(RETRY_S)
            if problem:
                self._lose(problem)

    def _send(self, batch: Batch) -> str:
        body, kind, encoding = batch
        headers = {"Content-Type": kind} | ({"Content-Encoding": encoding} if encoding else {})
        request = urllib.request.Request(self._address, body, headers)
        try:
            urllib.request.urlopen(request, timeout=SEND_S, context=self._trust).close()
        except urllib.error.HTTPError as error:
            with error:
                return f"{error.code} {error.reason}"
        except OSError as error:
            return str(error)
        return ""

    def _lose(self, problem: str) -> None:
        self.lost += 1
        sys.stderr.write(f"{self._address}: {self.lost} batches lost: {problem}\n")
