"""Writes ledgers as a decider does, for the publisher to read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import msgspec

from shared.bus.ids import new_id
from shared.bus.logs.log import Log
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobPreempted, JobSucceeded
from shared.contracts.base import Event
from shared.contracts.codec import encode_event
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from shared.ledger.record import Record, StoredEvent, encode, pack

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Ledgers:
    """One writer per ledger partition; every record continues the chain."""

    bus: Log
    chain: dict[TP, tuple[int, str]] = field(default_factory=lambda: defaultdict(lambda: (0, "")))

    async def append(self, ledger: str, partition: int, *events: Event, at: int = 1000) -> None:
        tp = TP(ledger, partition)
        seq, prev = self.chain[tp]
        record = Record(new_id(), seq + 1, prev, "w", at, {}, _packed(events))
        self.chain[tp] = (seq + 1, record.id)
        await self.bus.append(tp, encode(record))


def _packed(events: tuple[Event, ...]) -> msgspec.Raw:
    return pack(
        [
            StoredEvent(e.TYPE, e.subject, msgspec.Raw(encode_event(e)), "cause", TRACE)
            for e in events
        ]
    )


def pool(name: str = "main", partition: int = 0) -> PoolConfigured:
    return PoolConfigured(pool=name, partition=partition)


def admitted(job: str, tenant: str = "ada") -> JobAdmitted:
    spec = JobSpec(
        name="train",
        command=("python", "--key=canary-argv"),
        env={"A": "canary-env"},
        gang=Gang(workers=2),
    )
    return JobAdmitted(job_id=job, tenant=tenant, submitted_at=1, spec=spec)


def accepted(command: str, tenant: str = "ada") -> CommandAccepted:
    return CommandAccepted(command_id=command, command_type="job.submit.v1", tenant=tenant)


def succeeded(job: str, tenant: str = "ada") -> JobSucceeded:
    return JobSucceeded(job_id=job, tenant=tenant, attempt=1)


def preempted(job: str, by: str) -> JobPreempted:
    return JobPreempted(job_id=job, tenant="ada", attempt=1, reason="higher_class", by_job_id=by)
