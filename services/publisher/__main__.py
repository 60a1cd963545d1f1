"""Starts the publisher: settings, telemetry, wiring, run."""

from __future__ import annotations

import asyncio
import os

from services.publisher.app import Publisher
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import KafkaShipper
from shared.bus.fatal import run_to_end
from shared.bus.kafka import KafkaLog
from shared.settings import read_settings
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import serve_endpoint
from shared.telemetry.upkeep import run_upkeep


async def main() -> None:
    settings = read_settings(PublisherSettings, os.environ)
    telemetry = start_telemetry("publisher", settings)
    publisher = Publisher(
        settings,
        lambda: KafkaLog(settings.connection, client="publisher", gather_ms=50),
        lambda: KafkaShipper(settings.connection),
        telemetry.metrics,
    )
    serve_endpoint(telemetry.metrics, settings, lambda: publisher.ready, publisher.caught_up)
    beside = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    try:
        await publisher.run()
    finally:
        beside.cancel()


if __name__ == "__main__":
    run_to_end(main(), "publisher")
