"""Stand-in of Jaeger: OTLP/HTTP in, and a Zipkin beside it that answers on Jaeger's UI port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request

from infra.standins.otlp_http import receiver
from infra.standins.zipkin_spans import zipkin_spans
from shared.telemetry.otlp_decode import request_of

UI_PORT = 16686
SPANS = f"http://127.0.0.1:{UI_PORT}/api/v2/spans"
ZIPKIN = (
    "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", "/opt/zipkin.jar",
    "--armeria.ports[0].ip=0.0.0.0", f"--armeria.ports[0].port={UI_PORT}",
    "--armeria.ports[0].protocols[0]=http", "--zipkin.storage.mem.max-spans=100000",
    "--zipkin.query.lookback=604800000", "--logging.level.root=WARN",
)  # fmt: skip


def take(body: bytes, kind: str, encoding: str) -> int:
    """400 for what is no OTLP, 503 while Zipkin does not take it."""
    try:
        _, request = request_of(body, kind, encoding)
    except ValueError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 400
    spans = json.dumps(zipkin_spans(request)).encode()
    asked = urllib.request.Request(SPANS, spans, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(asked, timeout=5).close()
    except OSError as error:
        sys.stderr.write(f"zipkin does not take spans: {error}\n")
        return 503
    return 200


def main() -> None:
    zipkin = subprocess.Popen(ZIPKIN)
    signal.signal(signal.SIGTERM, lambda *_: zipkin.terminate())
    threading.Thread(target=receiver(take).serve_forever, daemon=True).start()
    # Without its server the gateway is of no use: both end together.
    os._exit(zipkin.wait())


if __name__ == "__main__":
    main()
