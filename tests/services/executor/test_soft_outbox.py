"""Telemetry and logs: what the broker does not take is dropped, and counted."""

from __future__ import annotations

import asyncio

from services.executor.soft_outbox import WAITING, SoftOutbox
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.reports import LogLines, TelemetryReported
from shared.ledger.partition import TP
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


async def test_a_flood_of_one_tenant_drops_its_own_records_alone_and_they_are_counted() -> None:
    metrics, broker = Metrics("executor"), MemoryBroker()
    outbox = SoftOutbox(MemoryLog(broker), "e1", metrics)
    outbox.post(0, TIMES)
    for number in range(WAITING + 9):
        outbox.post(0, LINES.model_copy(update={"first_line": number}), "a")
    outbox.post(0, LINES.model_copy(update={"first_line": 7777}), "b")
    assert (dropped(metrics, "telemetry"), dropped(metrics, "logs")) == (None, 11)
    sending = asyncio.create_task(outbox.run())
    await outbox.drained()
    sending.cancel()
    sent = [entry.value or b"" for entry in broker.entries(TP("logs", 0))]
    assert len(sent) == WAITING - 1 and len(broker.entries(TP("telemetry", 0))) == 1
    assert b"7777" in sent[1], "tenants take turns"
    assert b'"first_line":11,' in sent[0], "the oldest are dropped"
