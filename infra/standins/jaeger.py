"""Stand-in of Jaeger: the Zipkin gateway of `make tracing` on Jaeger's ports."""

from __future__ import annotations

from pathlib import Path

from infra.tracing.__main__ import Options, serve

OTLP_PORT = 4318
UI_PORT = 16686

if __name__ == "__main__":
    serve(Options(Path("/opt/zipkin.jar"), "0.0.0.0", OTLP_PORT, UI_PORT))
