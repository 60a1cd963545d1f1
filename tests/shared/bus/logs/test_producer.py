"""A producer stops in time, whatever its broker does."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.logs import producer
from shared.bus.logs.producer import TopicProducer
from tests.patience import PATIENCE_S


async def test_a_producer_stops_without_its_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiokafka waits for what it has not sent, longer than a lane may take to end."""

    class Stuck:
        async def stop(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(producer, "HANG_UP_S", 0.01)
    stuck = object.__new__(TopicProducer)
    monkeypatch.setattr(stuck, "_producer", Stuck(), raising=False)
    await asyncio.wait_for(stuck.stop(), PATIENCE_S)
