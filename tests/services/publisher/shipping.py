"""A shipper for tests of the publisher, without a broker."""

from __future__ import annotations

from collections.abc import Mapping

from services.publisher.shipper import Shipment
from shared.bus.logs.log import Log


class LogShipper:
    """A `Shipper` over the in-memory twin, one record at a time."""

    def __init__(self, bus: Log, topics: Mapping[str, int]) -> None:
        self._bus = bus
        self._topics = topics

    async def start(self) -> None:
        await self._bus.start()

    async def stop(self) -> None:
        await self._bus.stop()

    async def ship(self, shipment: Shipment) -> None:
        for tp, records in shipment.items():
            for record in records:
                await self._bus.append(tp, record.value, key=record.key, headers=record.headers)

    async def topics(self) -> dict[str, int]:
        return dict(self._topics)
