"""Starts the gateway: settings, telemetry, wiring, run."""

from __future__ import annotations

import os
import time

import uvicorn

from services.gateway.app import build
from services.gateway.parts import wire
from services.gateway.settings import GatewaySettings
from shared.listening import server_tls
from shared.settings import read
from shared.telemetry.page import render_page
from shared.telemetry.scrape import scrape_all
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import serve_endpoint

MOMENT = "%Y-%m-%d %H:%M:%S UTC"


def main() -> None:
    settings = read(GatewaySettings, os.environ)
    tls = server_tls(settings)
    telemetry = start_telemetry("gateway", settings)
    parts = wire(settings, telemetry)
    pages = {
        "/": lambda: render_page(scrape_all(settings.scraped), time.strftime(MOMENT, time.gmtime()))
    }
    serve_endpoint(
        telemetry.metrics, settings, lambda: parts.outbox.ready and parts.access.ready, pages=pages
    )
    uvicorn.run(
        build(parts),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        ssl_context_factory=(lambda *_: tls) if tls else None,
    )
    telemetry.spans.shutdown()


if __name__ == "__main__":
    main()
