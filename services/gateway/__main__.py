"""Starts the gateway: settings, telemetry, wiring, run."""

from __future__ import annotations

import os
import time

import uvicorn

from services.gateway.app import build
from services.gateway.figures import figures
from services.gateway.limits.http_protocol import limited_protocol
from services.gateway.settings import GatewaySettings
from services.gateway.wiring import wire_gateway
from shared.bus.clock import now_ms
from shared.http.capped_connections import ConnectionCap
from shared.http.server_settings import server_certificate
from shared.process.open_files import raise_limit
from shared.process.settings import read_settings
from shared.telemetry.page import render_page
from shared.telemetry.scrape import scrape_all
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import serve_endpoint

SCRAPE_TIME = "%Y-%m-%d %H:%M:%S UTC"


def main() -> None:
    raise_limit()
    settings = read_settings(GatewaySettings, os.environ)
    certificate = server_certificate(settings)
    telemetry = start_telemetry("gateway", settings)
    telemetry.metrics.watch_certificate(certificate)
    gateway = wire_gateway(settings, telemetry)

    telemetry.metrics.watch(lambda: figures(gateway.access.view.enrolled, now_ms()))

    def overview() -> str:
        scraped_at = time.strftime(SCRAPE_TIME, time.gmtime())
        return render_page(scrape_all(settings.scraped), scraped_at)

    serve_endpoint(
        telemetry.metrics,
        settings,
        lambda: gateway.outbox.ready and gateway.access.ready,
        pages={"/": overview},
    )
    uvicorn.run(
        build(gateway),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        http=limited_protocol(ConnectionCap(settings.connections_per_address)),
        ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
    )
    telemetry.spans.shutdown()


if __name__ == "__main__":
    main()
