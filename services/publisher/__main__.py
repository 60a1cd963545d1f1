"""Starts the publisher: settings, telemetry, wiring, run."""

from __future__ import annotations

import asyncio
import os

from services.publisher.app import Publisher
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import KafkaShipper
from shared.bus.kafka import KafkaLog
from shared.settings import read
from shared.telemetry.setup import telemetry_for


async def main() -> None:
    settings = read(PublisherSettings, os.environ)
    telemetry = telemetry_for("publisher", settings)
    publisher = Publisher(
        settings,
        lambda: KafkaLog(settings.connection, client="publisher", gather_ms=50),
        lambda: KafkaShipper(settings.connection),
        telemetry.metrics,
    )
    if settings.metrics_port:
        telemetry.metrics.serve(settings.metrics_port, lambda: publisher.ready)
    await publisher.run()


if __name__ == "__main__":
    asyncio.run(main())
