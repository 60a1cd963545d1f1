"""What admission knows of one pool: who may have how much, who waits for what, who is in."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from services.admission.core.ended import EndedJobs, Outcome
from services.admission.core.need import Need, Shape
from shared.contracts.access import PoolConfigured
from shared.contracts.bookkeeping import NodeShape, TenantNoted
from shared.contracts.jobs import DeferReason, JobSpec, QuotaChanged
from shared.ledger.answers import AnsweredCommands

Line = OrderedDict[str, None]
"""Job ids, first come first; unlike a dict it gives its first one away in no time."""


@dataclass(slots=True)
class Job:
    """A job that is not admitted yet, with the trace and cause of its submission."""

    job_id: str
    tenant: str
    spec: JobSpec
    need: Need
    digest: str
    submitted_at: int
    array_index: int | None = None
    cause: str = ""
    traceparent: str = ""
    reason: DeferReason | None = None
    missing: set[str] = field(default_factory=set)
    """Dependencies that have not ended; asked for membership only."""


@dataclass(slots=True)
class Admitted:
    """A job that is in: what its quota, its retries and its cancels need, and no more."""

    tenant: str
    gang_milli: int
    worker_milli: int
    spot: bool
    digest: str
    array_index: int | None
    backoff_s: float
    avoid_failed_node: bool
    avoid_nodes: tuple[str, ...] = ()
    cancels: tuple[tuple[str, str], ...] = ()
    """(command id, traceparent) of those who wait for its end."""


@dataclass(slots=True)
class Array:
    """An array until the last of its jobs has ended; jobs before `next_index` exist."""

    job_id: str
    tenant: str
    spec: JobSpec
    size: int
    digest: str
    submitted_at: int
    cause: str
    traceparent: str
    left: int
    next_index: int = 0
    all_succeeded: bool = True
    cancels: tuple[tuple[str, str], ...] = ()
    """(command id, traceparent) of those who wait for its end."""
    why: str = ""
    """The reason that the first of them gave."""
    told: int = 0
    """Of a cancelled array: jobs before it were asked to end, or had ended."""
    cut: int = 0
    """Jobs that were cancelled since then, or were never made."""


class Owed(NamedTuple):
    """A cancelled array is over: what its command is answered next."""

    traceparent: str
    array_id: str
    tenant: str
    outcome: Outcome


@dataclass(slots=True)
class Backoff:
    """A failed attempt that waits for its next one."""

    attempt: int
    cause: str
    traceparent: str


@dataclass(slots=True)
class Used:
    """Thousandths of GPUs that admitted jobs hold or wait for, by tenant."""

    regular: dict[str, int] = field(default_factory=dict)
    spot: dict[str, int] = field(default_factory=dict)
    spot_total: int = 0


@dataclass(slots=True)
class Waits:
    """Each deferred job stands in exactly one of these, or in `again`."""

    lines: dict[str, Line] = field(default_factory=dict)
    """By tenant: behind its quota. Only the first is ever looked at."""
    spot_lines: dict[str, Line] = field(default_factory=dict)
    parked: dict[str, Line] = field(default_factory=dict)
    """By tenant: larger than its whole bound, so they must not stand in anybody's way."""
    nodeless: Line = field(default_factory=OrderedDict)
    dependents: dict[str, Line] = field(default_factory=dict)
    """By the job that they depend on."""
    again: Line = field(default_factory=OrderedDict)
    """What they waited for has come: the next thing that `decide` looks at."""


@dataclass(slots=True)
class Pool:
    """One lane; only `evolve` changes it."""

    SCHEMA: ClassVar[str] = "admission-3"
    partition: int
    pool: PoolConfigured | None = None
    tenants: dict[str, TenantNoted] = field(default_factory=dict)
    quotas: dict[str, QuotaChanged] = field(default_factory=dict)
    nodes: dict[str, NodeShape] = field(default_factory=dict)
    """Nodes that are there, or were and may come back."""
    shapes: dict[Shape, int] = field(default_factory=dict)
    settled_at: int = 0
    """ms: before it nodes still come and go, and nobody is told `never`."""
    deferred: dict[str, Job] = field(default_factory=dict)
    admitted: dict[str, Admitted] = field(default_factory=dict)
    ended: EndedJobs = field(default_factory=EndedJobs)
    arrays: dict[str, Array] = field(default_factory=dict)
    folded: Line = field(default_factory=OrderedDict)
    """Arrays some of whose jobs do not exist yet."""
    cancelling: Line = field(default_factory=OrderedDict)
    """Cancelled arrays some of whose jobs were not asked to end yet."""
    owed: dict[str, Owed] = field(default_factory=dict)
    """Answers that are known, by command id."""
    used: Used = field(default_factory=Used)
    waits: Waits = field(default_factory=Waits)
    backoffs: dict[str, Backoff] = field(default_factory=dict)
    alarms: list[tuple[int, str]] = field(default_factory=list)
    """A heap of (ms, job id); its first is never out of date."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def name(self) -> str:
        return self.pool.pool if self.pool else ""

    def is_active(self, tenant: str) -> bool:
        found = self.tenants.get(tenant)
        return found is not None and found.active
