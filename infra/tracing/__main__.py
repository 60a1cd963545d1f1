"""`python -m infra.tracing`: Zipkin behind an OTLP address that also forwards to others.

Zipkin accepts no OTLP and has no links: spans are converted to its JSON, links to tags.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.machine.process import tied
from infra.tracing import zipkin
from infra.tracing.forward import Forward
from infra.tracing.otlp_http import Take, receiver
from infra.tracing.zipkin_spans import zipkin_spans
from shared.telemetry.otlp_decode import decode_request

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Options:
    """Options; `also` are OTLP base addresses to forward to, `ca` the authority of https ones (None
    for the system's)."""

    jar: Path
    host: str
    otlp_port: int
    ui_port: int
    also: tuple[str, ...] = ()
    ca: str | None = None


def taking(spans: Forward, others: Sequence[Forward]) -> Take:
    """Queue a batch; return 400 if it is not OTLP."""

    def take(body: bytes, kind: str, encoding: str) -> int:
        try:
            _, request = decode_request(body, kind, encoding)
        except ValueError as error:
            sys.stderr.write(f"refused: {error}\n")
            return 400
        spans.put((json.dumps(zipkin_spans(request)).encode(), JSON, ""))
        for other in others:
            other.put((body, kind, encoding))
        return 200

    return take


def serve(options: Options) -> None:
    """Serve until Zipkin ends."""
    command = zipkin.command(options.jar, options.host, options.ui_port)
    server = subprocess.Popen([*tied("KILL"), *command])
    signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    others = [Forward(address.rstrip("/") + "/v1/traces", options.ca) for address in options.also]
    take = taking(Forward(zipkin.spans_url(options.ui_port)), others)
    gateway = receiver(take, options.otlp_port, options.host)
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    os._exit(server.wait())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m infra.tracing", description=__doc__)
    parser.add_argument("--fetch", action="store_true", help="only fetch Zipkin's jar")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--otlp-port", type=int, default=4318)
    parser.add_argument("--ui-port", type=int, default=9411)
    parser.add_argument("--also", action="append", default=[], help="an OTLP address, repeatable")
    parser.add_argument("--ca", help="certificate authority of these addresses, PEM")
    options = parser.parse_args()
    jar = zipkin.fetch()
    if not options.fetch:
        also = tuple(options.also)
        serve(Options(jar, options.host, options.otlp_port, options.ui_port, also, options.ca))


if __name__ == "__main__":
    main()
