"""The fields of a record of `logs` that readers of output use."""

from __future__ import annotations

from typing import Annotated

import msgspec

from shared.bus.logs.log import Entry
from shared.job_logs.chunk import JobKey, Run, Worker
from shared.ledger.cloudevents import Malformed, decode

Number = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Part = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._:-]*[A-Za-z0-9_:-][A-Za-z0-9._:-]*$")]
"""A part of the name of an object, which leads nowhere else."""


class Printed(msgspec.Struct, frozen=True):
    """Lines that a worker printed, as of one record."""

    job_id: Part
    tenant: Part
    rank: Number
    attempt: Number
    first_line: Number
    lines: list[str]
    is_last: bool = False
    """The output of the worker is complete; older agents do not say so."""
    open_line: str = ""
    """The state of the line behind these, which the worker has not ended yet."""

    @property
    def worker(self) -> Worker:
        return Worker(self.attempt, self.rank)

    @property
    def next_line(self) -> int:
        return self.first_line + len(self.lines)

    def key(self, lane: int) -> JobKey:
        return JobKey(lane, self.tenant, self.job_id)

    def run_from(self, due: int, at_ms: int) -> Run | None:
        """Return the lines from number `due` on; None if there are none."""
        first = max(due, self.first_line)
        lines = self.lines[first - self.first_line :]
        return Run(at_ms, first, lines) if lines else None


def printed_of(entry: Entry) -> Printed | None:
    """Return what a record says; None for bytes that are no output."""
    if entry.value is None:
        return None
    try:
        return msgspec.json.decode(decode(entry.value).body, type=Printed)
    except (Malformed, msgspec.MsgspecError, UnicodeDecodeError):
        return None
