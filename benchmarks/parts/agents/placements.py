"""Times of jobs in the ledger of placement."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.bus.logs.tail import LedgerTail

PLACED, STARTED = "job.placed.v1", "job.started.v1"


@dataclass(slots=True)
class Placements:
    """Times of JobPlaced, as the ledger has them."""

    allocation_ms: dict[str, int] = field(default_factory=dict)
    """Time of the record by the allocation of rank 0."""
    job_ms: dict[str, int] = field(default_factory=dict)
    """Time of the record by the job."""
    ready_ms: dict[str, int] = field(default_factory=dict)
    """By job, from JobPlaced to JobStarted, which follows the report that its worker is ready."""

    async def watch(self, tail: LedgerTail) -> None:
        """Read until cancelled."""
        while True:
            for accepted in await tail.poll(0.5):
                for raw in accepted.raw():
                    place = f"{accepted.partition}/{raw.seq}/{raw.index}"
                    self.note(raw.type, raw.subject, place, raw.at)

    def note(self, type_: str, job_id: str, place: str, at_ms: int) -> None:
        if type_ == PLACED:
            self.allocation_ms[f"{place}/0"] = self.job_ms[job_id] = at_ms
        elif type_ == STARTED and job_id in self.job_ms:
            self.ready_ms.setdefault(job_id, at_ms - self.job_ms[job_id])
