"""A job that was transferred is in one pool: it comes from a job that left for it, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from shared.contracts.transfers import transferred_job_id
from shared.projections.ledger_events import LedgerEvent
from shared.verify.row_store import RowStore
from shared.verify.rules import Bounds, Violation

LEFT, ARRIVED = "job that left for another pool", "job that came from another pool"
WITH_SPEC = ("job.admitted.v1", "job.deferred.v1")


@dataclass(slots=True)
class TransferRule:
    """Compares the ends of jobs that left a pool with the jobs that came from there.

    A job is submitted behind its end in the pool before, so that an arrival without one is a second
    copy. One that has not arrived yet is on its way.
    """

    CARRIED: ClassVar[tuple[str, ...]] = ("unexplained",)
    LEDGERS: ClassVar[tuple[str, ...]] = ("admission", "placement")
    bounds: Bounds
    kept: RowStore = field(default_factory=RowStore)
    """By the id in the pool that they go to, the jobs that left, and those that arrived."""
    name: str = "a transferred job is in one pool"
    unexplained: dict[str, tuple[str, str, int, int]] = field(default_factory=dict)
    """Jobs that arrived while no job had left for them: the id before, event id, partition, seq."""
    violations: list[Violation] = field(default_factory=list)

    def observe(self, event: LedgerEvent) -> None:
        if event.type == "job.cancelled.v1" and (target := event.data.get("transferred_to")):
            self._observe_left(event, target)
        elif event.ledger == "admission" and event.type in WITH_SPEC:
            before = (event.data.get("spec") or {}).get("transferred")
            if before:
                self._observe_arrived(event, before["from_job_id"])

    def _observe_left(self, event: LedgerEvent, target: dict[str, str]) -> None:
        job_id, there = event.data["job_id"], target["job_id"]
        if there != transferred_job_id(event.data["tenant"], target["pool"], job_id):
            self._add(event, f"{job_id} left as {there}, which is not its id in {target['pool']}")
        if self.kept.get(LEFT, there) is not None:
            self._add(event, f"{job_id} left as {there}, as another job did")
            return
        self.kept.put(LEFT, there, (job_id,))
        before = self.unexplained.pop(there, None)
        if before is not None and before[0] != job_id:
            self._add(event, f"{there} comes from {before[0]}, and {job_id} left for it")

    def _observe_arrived(self, event: LedgerEvent, from_job_id: str) -> None:
        job_id = event.data["job_id"]
        if self.kept.get(ARRIVED, job_id) is not None:
            return
        self.kept.put(ARRIVED, job_id, (from_job_id,))
        left = self.kept.get(LEFT, job_id)
        if left is None:
            self.unexplained[job_id] = from_job_id, event.id, event.partition, event.seq
        elif left[0] != from_job_id:
            self._add(event, f"{job_id} comes from {from_job_id}, and {left[0]} left for it")

    def _add(self, event: LedgerEvent, detail: str) -> None:
        self.violations.append(Violation(self.name, event.id, detail))

    def finish(self) -> Iterator[Violation]:
        yield from self.violations
        for job_id, (before, event_id, partition, seq) in sorted(self.unexplained.items()):
            if self.bounds.reach("admission", partition, seq):
                yield Violation(
                    self.name, event_id, f"{job_id} comes from {before}, which has not left"
                )
