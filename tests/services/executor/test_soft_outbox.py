"""Telemetry and logs: what the broker does not take is dropped, and counted."""

from __future__ import annotations

import asyncio

from services.executor.soft_outbox import WAITING, SoftOutbox
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.reports import LogLines, TelemetryReported
from shared.telemetry.metrics import Metrics
from tests.harness.flaky_log import FlakyLog

LINES = LogLines(job_id="j", tenant="a", rank=0, attempt=1, first_line=0, lines=("one",))
TIMES = TelemetryReported(executor_id="e1", at=1, times=())


def dropped(metrics: Metrics, topic: str) -> float | None:
    return metrics.registry.get_sample_value("berth_dropped_records_total", {"topic": topic})


async def test_a_record_that_is_not_acknowledged_is_counted() -> None:
    metrics, log = Metrics("executor"), FlakyLog(MemoryLog(MemoryBroker()))
    outbox = SoftOutbox(log, "e1", metrics)
    log.accidents.append("lost_request")
    outbox.post(0, TIMES)
    outbox.post(0, LINES, "a")
    sending = asyncio.create_task(outbox.run())
    await outbox.drained()
    sending.cancel()
    assert dropped(metrics, "telemetry") == 1
    assert dropped(metrics, "logs") is None


async def test_the_oldest_are_dropped_first_and_counted_by_their_topic() -> None:
    metrics = Metrics("executor")
    outbox = SoftOutbox(MemoryLog(MemoryBroker()), "e1", metrics)
    outbox.post(0, TIMES)
    for _ in range(WAITING - 1):
        outbox.post(0, LINES, "a")
    assert dropped(metrics, "telemetry") is None
    for _ in range(2):
        outbox.post(0, LINES, "a")
    assert (dropped(metrics, "telemetry"), dropped(metrics, "logs")) == (1, 1)
