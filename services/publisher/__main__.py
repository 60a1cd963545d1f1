"""Starts the publisher: settings, telemetry, wiring, run."""

from __future__ import annotations

import asyncio
import os
import secrets

from services.publisher.app import Publisher
from services.publisher.settings import PublisherSettings
from services.publisher.shipper import KafkaShipper
from shared.bus.archive.archiver import ArchiverOptions
from shared.bus.archive.archiving import Archiving, ArchivingPace
from shared.bus.archive.opening import open_store, with_archive
from shared.bus.archive.s3_address import PREFIX
from shared.bus.fatal import run_to_end
from shared.bus.logs.kafka import KafkaLog
from shared.bus.logs.retention_watch import Kept, RetentionWatch
from shared.contracts.topics import TOPICS
from shared.process.heap import settle_heap
from shared.process.settings import read_settings
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import serve_endpoint
from shared.telemetry.upkeep import run_upkeep

EVENTS = "events"
HOUR_S = 3600.0


async def main() -> None:
    settings = read_settings(PublisherSettings, os.environ)
    telemetry = start_telemetry("publisher", settings)
    publisher = Publisher(
        settings,
        lambda: with_archive(
            KafkaLog(settings.connection, client="publisher", gather_ms=50), settings.archive
        ),
        lambda: KafkaShipper(settings.connection),
        telemetry.metrics,
    )
    serve_endpoint(telemetry.metrics, settings, lambda: publisher.ready, publisher.caught_up)
    settle_heap()
    beside = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    archiving = asyncio.ensure_future(archive(settings, telemetry.metrics))
    watching = asyncio.ensure_future(watch_retention(settings, telemetry.metrics))
    try:
        await publisher.run()
    finally:
        beside.cancel()
        archiving.cancel()
        watching.cancel()


async def watch_retention(settings: PublisherSettings, metrics: Metrics) -> None:
    """Report whether the broker removes old records of `events`."""
    kept = Kept(EVENTS, settings.partitions, TOPICS[EVENTS].retention_ms)
    watch = RetentionWatch(lambda: KafkaLog(settings.connection, client="retention"), kept)
    metrics.watch_retention(EVENTS, watch.behind_s)
    await watch.run()


async def archive(settings: PublisherSettings, metrics: Metrics) -> None:
    """Archive ledgers and inputs, which this service may read, if there is an archive.

    The topics are read as they are: the archive must never be copied from itself.
    """
    if not settings.archive:
        return
    task = Archiving(
        lambda: KafkaLog(settings.connection, client="archiver"),
        open_store(settings.archive),
        settings.partitions,
        ArchiverOptions(f"{settings.instance or 'publisher'}-{secrets.token_hex(8)}"),
        ArchivingPace(entry_every_s=settings.archive_every_h * HOUR_S),
    )
    is_folder = not settings.archive.startswith(PREFIX)
    free_ratio = task.free_ratio if is_folder else None
    metrics.watch_archive(task.behind_s, task.unreachable_s, free_ratio)
    await task.run()


if __name__ == "__main__":
    run_to_end(main(), "publisher")
