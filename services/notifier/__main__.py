"""Starts the notifier: settings, telemetry, run."""

from __future__ import annotations

import asyncio
import os
import signal

from services.notifier.app import Notifier
from services.notifier.settings import NotifierSettings
from shared.bus.fatal import run_to_end
from shared.process.settings import read_settings
from shared.telemetry.setup import start_telemetry
from shared.telemetry.shell import serve_endpoint
from shared.telemetry.upkeep import run_upkeep

RESOLVER = "timeout:2 attempts:2"
"""Options of the resolver (resolv.conf(5)): a silent name server ends before the attempt does."""


async def main(settings: NotifierSettings) -> None:
    telemetry = start_telemetry("notifier", settings)
    notifier = Notifier(settings, telemetry.metrics)
    serve_endpoint(telemetry.metrics, settings, lambda: notifier.ready, notifier.caught_up)
    task = asyncio.ensure_future(notifier.run())
    background = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)
    await asyncio.wait([task])
    background.cancel()
    telemetry.spans.shutdown()
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    os.environ.setdefault("RES_OPTIONS", RESOLVER)
    run_to_end(main(read_settings(NotifierSettings, os.environ)), "notifier")
