"""The two ledgers of a pool that say why a job of pods waits, as `berth why` reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from services.executor.core.kubernetes.pod_jobs import CONSUMED, LEDGERS, PodJobs, fold
from services.executor.pool_ledger import PoolLedger
from services.executor.settings import ExecutorSettings
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.log import Log
from shared.ledger.reader import Accepted
from shared.telemetry.metrics import Metrics


class PodLedger:
    """Folds one of them while `run` runs."""

    def __init__(
        self,
        settings: ExecutorSettings,
        ledger: str,
        partition: int,
        connect: Callable[[], Log],
        metrics: Metrics,
    ) -> None:
        self.state = PodJobs()
        self.caught_up = asyncio.Event()
        folder = settings.folder / "pods"
        snapshots: Snapshots[PodJobs] = Snapshots(folder, ledger, partition, key_of_state(PodJobs))
        self._ledger = PoolLedger(
            connect(), partition, snapshots, metrics, ledger=ledger, consumes=CONSUMED.__contains__
        )

    async def run(self) -> None:
        """Fold to the present end, then read and store snapshots until cancelled."""
        try:
            self.state = self._ledger.restore() or self.state
            await self._ledger.start()
            while not self._ledger.caught_up:
                self._fold(await self._ledger.poll())
            self.caught_up.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ledger.keep_snapshots(lambda: self.state))
                group.create_task(self._read())
        finally:
            await self._ledger.stop()

    async def _read(self) -> None:
        while True:
            self._fold(await self._ledger.poll())

    def _fold(self, batch: list[Accepted]) -> None:
        for accepted in batch:
            record = accepted.record
            for fact in self._ledger.facts(record, record.events()):
                fold(self.state, fact)


def pod_ledgers(
    settings: ExecutorSettings, partition: int, connect: Callable[[], Log], metrics: Metrics
) -> tuple[PodLedger, PodLedger]:
    """Return those of admission and of placement."""
    admission, placement = (
        PodLedger(settings, name, partition, connect, metrics) for name in LEDGERS
    )
    return admission, placement
