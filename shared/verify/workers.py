"""Executors make ready only what an accepted record has placed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from shared.projections.ledger_events import LedgerEvent
from shared.verify.rules import Violation


@dataclass(frozen=True, slots=True)
class MadeReady:
    """An executor's word that a worker waits for its start."""

    allocation_id: str
    job_id: str
    spot: str


@dataclass(slots=True)
class WorkersAccepted:
    """A record that the reader rule ignores may bear the same number as one that counts, so the job
    is compared too."""

    ready: list[MadeReady]
    name: str = "executors make ready only what was accepted"
    placed: dict[str, str] = field(default_factory=dict)
    """Allocation to its job."""

    def see(self, line: LedgerEvent) -> None:
        if line.ledger == "placement" and line.type == "job.placed.v1":
            for lease in line.data["allocations"]:
                self.placed[f"{line.position}/{lease['rank']}"] = line.data["job_id"]

    def finish(self) -> Iterator[Violation]:
        for each in self.ready:
            if self.placed.get(each.allocation_id) != each.job_id:
                what = f"{each.allocation_id} was made ready for {each.job_id}, and never placed so"
                yield Violation(self.name, each.spot, what)
