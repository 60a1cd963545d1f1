"""Stand-in of the OpenTelemetry Collector: OTLP/HTTP in, OTLP/HTTP out to every exporter.

It reads the collector's own configuration for the addresses. It has no pipelines and no memory
limiter; each exporter has a bounded queue. What does not fit, or is refused, is counted and lost.
"""

from __future__ import annotations

import argparse
import queue
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from infra.standins.otlp_http import receiver

QUEUE_BATCHES = 1000
RETRY_FOR_S = 120.0
RETRY_S = 1.0

Batch = tuple[bytes, str, str]


def endpoints(config: dict[str, Any]) -> list[str]:
    """Base addresses of the exporters that speak OTLP/HTTP."""
    exporters = config["exporters"].items()
    return [each["endpoint"] for name, each in exporters if name.startswith("otlphttp")]


class Exporter:
    """Sends batches to one address, in their order, from a thread of its own."""

    def __init__(self, endpoint: str) -> None:
        self._address = endpoint.rstrip("/") + "/v1/traces"
        self._waiting: queue.Queue[Batch] = queue.Queue(QUEUE_BATCHES)
        self.lost = 0
        threading.Thread(target=self._run, daemon=True).start()

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
        try:
            urllib.request.urlopen(
                urllib.request.Request(self._address, body, headers), timeout=5
            ).close()
        except urllib.error.HTTPError as error:
            with error:
                return f"{error.code} {error.reason}"
        except OSError as error:
            return str(error)
        return ""

    def _lose(self, problem: str) -> None:
        self.lost += 1
        sys.stderr.write(f"{self._address}: {self.lost} batches lost: {problem}\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    options = parser.parse_args()
    found = endpoints(yaml.safe_load(options.config.read_text()))
    exporters = [Exporter(endpoint) for endpoint in found]

    def take(*batch: Any) -> int:
        for exporter in exporters:
            exporter.put(batch)
        return 200

    sys.stderr.write(f"stand-in collector; spans go on to {', '.join(found)}\n")
    receiver(take).serve_forever()


if __name__ == "__main__":
    main()
