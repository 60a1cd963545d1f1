"""Executors prepare only workers that an accepted record has placed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.projections.ledger_events import LedgerEvent
from shared.verify.row_store import RowStore
from shared.verify.rules import Violation

PLACED = "placed worker"


@dataclass(frozen=True, slots=True)
class ReadyWorker:
    """A report of an executor that a worker is prepared."""

    allocation_id: str
    job_id: str
    position: str


@dataclass(slots=True)
class ReadyWorkerRule:
    """A worker that an executor made ready was placed by an accepted record, for the same job.

    A record that no reader accepts may repeat an accepted seq.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ()
    LEDGERS: ClassVar[tuple[str, ...]] = ("placement",)
    ready: list[ReadyWorker]
    kept: RowStore = field(default_factory=RowStore)
    name: str = "executors make ready only what was accepted"

    def observe(self, event: LedgerEvent) -> None:
        if event.ledger == "placement" and event.type == "job.placed.v1":
            for allocation in event.data["allocations"]:
                allocation_id = f"{event.position}/{allocation['rank']}"
                self.kept.put(PLACED, allocation_id, (event.data["job_id"],))

    def finish(self) -> Iterator[Violation]:
        for worker in self.ready:
            if self.kept.get(PLACED, worker.allocation_id) != (worker.job_id,):
                detail = f"{worker.allocation_id} is ready for {worker.job_id} but was not placed"
                yield Violation(self.name, worker.position, detail)
