"""`python -m services.projector`"""

from __future__ import annotations

import asyncio
import os
import signal

from services.projector.app import Projector
from services.projector.settings import ProjectorSettings
from shared.settings import read
from shared.telemetry.setup import telemetry_for


async def main(settings: ProjectorSettings) -> None:
    telemetry = telemetry_for("projector", settings)
    projector = Projector(settings, telemetry.metrics)
    if settings.metrics_port:
        telemetry.metrics.serve(settings.metrics_port, lambda: projector.ready)
    task = asyncio.ensure_future(projector.run())
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)
    await asyncio.wait([task])
    telemetry.spans.shutdown()
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    asyncio.run(main(read(ProjectorSettings, os.environ)))
