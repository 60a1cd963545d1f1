"""The process around an executor: inventory, broker, telemetry, signals."""

from __future__ import annotations

import asyncio
import signal

from services.executor.app import Executor
from services.executor.core.inventory import InventoryNode, parse
from services.executor.settings import ExecutorSettings
from shared.bus.kafka import KafkaLog
from shared.bus.log import Log
from shared.settings import BadSettings
from shared.telemetry.setup import start_telemetry
from shared.telemetry.upkeep import run_upkeep


async def serve(settings: ExecutorSettings) -> None:
    """Until SIGTERM or SIGINT; workers are then stopped, and their ends told."""
    telemetry = start_telemetry("executor", settings)
    nodes = _inventory(settings)
    executor = Executor(settings, nodes, lambda: _connect(settings), telemetry.metrics)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    telemetry.metrics.watch_disk(settings.data)
    endpoint = telemetry.metrics.serve(
        settings.metrics_port, executor.health, settings.metrics_host
    )
    beside = asyncio.ensure_future(run_upkeep(telemetry.metrics))
    try:
        await executor.run(stop)
    finally:
        beside.cancel()
        endpoint.close()
        telemetry.spans.shutdown()


def _connect(settings: ExecutorSettings) -> Log:
    return KafkaLog(settings.connection, client=f"executor-{settings.executor_id}")


def _inventory(settings: ExecutorSettings) -> tuple[InventoryNode, ...]:
    try:
        return parse(settings.nodes.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadSettings(f"BERTH_NODES: {error}") from None
