"""Starts the gateway: settings, telemetry, wiring, run."""

from __future__ import annotations

import os

import uvicorn

from services.gateway.app import build
from services.gateway.parts import wire
from services.gateway.settings import GatewaySettings
from shared.settings import read
from shared.telemetry.setup import telemetry_for


def main() -> None:
    settings = read(GatewaySettings, os.environ)
    telemetry = telemetry_for("gateway", settings)
    parts = wire(settings, telemetry)
    if settings.metrics_port:
        telemetry.metrics.serve(settings.metrics_port, lambda: parts.outbox.ready)
    uvicorn.run(
        build(parts), host=settings.host, port=settings.port, log_config=None, access_log=False,
        server_header=False, timeout_graceful_shutdown=3,
    )  # fmt: skip
    telemetry.spans.shutdown()


if __name__ == "__main__":
    main()
