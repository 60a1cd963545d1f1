"""The state of one pool's admission: settings, quotas, nodes, and jobs until they have ended."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from services.admission.core.demand import Demand
from services.admission.core.ended_jobs import EndedJobs, Outcome
from shared.contracts.admission import DeferReason, QuotaChanged
from shared.contracts.bookkeeping import NodeShape, TenantNoted
from shared.contracts.bounds import UserBounds
from shared.contracts.clocks import ClockStepped
from shared.contracts.gang_needs import NodeKind
from shared.contracts.job_spec import JobSpec
from shared.contracts.pools import PoolConfigured, PoolDeleted
from shared.ledger.answers import AnsweredCommands

JobIds = OrderedDict[str, None]
"""Job ids in order of arrival; unlike a dict it finds its first one in constant time."""


class Owner(NamedTuple):
    """The tenant and the user that a job belongs to."""

    tenant: str
    user: str


@dataclass(slots=True)
class PendingJob:
    """A job that is not admitted yet, with the trace and the cause of its submission."""

    job_id: str
    tenant: str
    spec: JobSpec
    demand: Demand
    digest: str
    submitted_at: int
    array_index: int | None = None
    cause: str = ""
    traceparent: str = ""
    reason: DeferReason | None = None
    missing: set[str] = field(default_factory=set)
    """Dependencies that have not ended; used for membership only."""

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.spec.user)


@dataclass(slots=True)
class AdmittedJob:
    """A job in the queue or running: only what its quota, its retries and its cancels need."""

    owner: Owner
    gang_milli: int
    worker_milli: int
    spot: bool
    digest: str
    array_index: int | None
    backoff_s: float
    avoid_failed_node: bool
    avoid_nodes: tuple[str, ...] = ()
    cancels: tuple[tuple[str, str], ...] = ()
    """(command id, traceparent) of the cancels that its end answers."""

    @property
    def tenant(self) -> str:
        return self.owner.tenant


@dataclass(slots=True)
class JobArray:
    """An array until the last of its jobs has ended; jobs before `next_index` exist."""

    job_id: str
    tenant: str
    spec: JobSpec
    size: int
    digest: str
    submitted_at: int
    cause: str
    traceparent: str
    remaining: int
    """Jobs that have not ended, created or not."""
    next_index: int = 0
    all_succeeded: bool = True
    cancels: tuple[tuple[str, str], ...] = ()
    """(command id, traceparent) of the cancels that its end answers."""
    cancel_reason: str = ""
    """The reason given by the first cancel."""
    cancel_index: int = 0
    """Jobs of a cancelled array before this index had their cancel requested, or had ended."""
    cancelled_jobs: int = 0
    """Jobs that were cancelled since the first cancel, or were never created."""
    program_once: bool = False
    """Its jobs are recorded without its program, and `spec` lacks it."""
    held: JobIds = field(default_factory=OrderedDict)
    """Its jobs that wait until fewer of it are under way."""

    @property
    def owner(self) -> Owner:
        return Owner(self.tenant, self.spec.user)

    @property
    def under_way(self) -> int:
        """The number of its jobs that exist, have not ended and are not held."""
        return self.remaining - (self.size - self.next_index) - len(self.held)

    @property
    def is_full(self) -> bool:
        """Return whether as many of its jobs are under way as may be."""
        at_once = self.spec.array_at_once
        return at_once is not None and self.under_way >= at_once


class PendingAnswer(NamedTuple):
    """The answer to the cancel of an array that has ended, not yet in the ledger."""

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
class QuotaUse:
    """Thousandths of GPUs that admitted jobs hold or wait for, by tenant."""

    regular: dict[str, int] = field(default_factory=dict)
    spot: dict[str, int] = field(default_factory=dict)
    spot_total: int = 0
    of_users: dict[Owner, int] = field(default_factory=dict)
    """Of both, by user."""


@dataclass(slots=True)
class WaitingJobs:
    """The deferred jobs by what they wait for: each is in exactly one queue or set, or `ready`."""

    quota_queues: dict[str, JobIds] = field(default_factory=dict)
    """By tenant: jobs beyond its quota. Only the first of a queue is ever considered."""
    spot_queues: dict[str, JobIds] = field(default_factory=dict)
    oversized: dict[str, JobIds] = field(default_factory=dict)
    """By tenant: jobs larger than its whole bound, skipped so that they block no queue."""
    user_queues: dict[Owner, JobIds] = field(default_factory=dict)
    """By user: jobs beyond the GPUs that it may have at once. Only the first is ever considered."""
    user_oversized: dict[Owner, JobIds] = field(default_factory=dict)
    users_with_room: OrderedDict[Owner, None] = field(default_factory=OrderedDict)
    """Users whose first queued job has room, so that no other queue has to be looked at."""
    awaiting_nodes: JobIds = field(default_factory=OrderedDict)
    dependents: dict[str, JobIds] = field(default_factory=dict)
    """By the job that they depend on."""
    ready: JobIds = field(default_factory=OrderedDict)
    """Jobs whose wait is over: `decide` considers them next."""


@dataclass(slots=True)
class AdmissionState:
    """The state of one lane, which belongs to one pool; only `evolve` changes it."""

    partition: int
    pool: PoolConfigured | None = None
    deleted: PoolDeleted | None = None
    """The deletion of the pool, until it is configured again; its open jobs go on."""
    clock_step: ClockStepped | None = None
    """The last step of the host's clock."""
    tenants: dict[str, TenantNoted] = field(default_factory=dict)
    users: dict[str, dict[str, UserBounds]] = field(default_factory=dict)
    """By tenant: bounds of its registered users."""
    quotas: dict[str, QuotaChanged] = field(default_factory=dict)
    nodes: dict[str, NodeShape] = field(default_factory=dict)
    """Nodes that are present, or were lost and may come back."""
    node_kinds: dict[NodeKind, int] = field(default_factory=dict)
    nodes_settled_at: int = 0
    """ms: until then nodes still come and go, and no job is rejected as infeasible."""
    deferred: dict[str, PendingJob] = field(default_factory=dict)
    admitted: dict[str, AdmittedJob] = field(default_factory=dict)
    open_jobs: dict[str, int] = field(default_factory=dict)
    """By tenant: jobs that wait or run, and those of arrays that are not created yet."""
    open_jobs_of_users: dict[Owner, int] = field(default_factory=dict)
    ended: EndedJobs = field(default_factory=EndedJobs)
    arrays: dict[str, JobArray] = field(default_factory=dict)
    expanding: JobIds = field(default_factory=OrderedDict)
    """Arrays some of whose jobs do not exist yet."""
    cancelling: JobIds = field(default_factory=OrderedDict)
    """Cancelled arrays some of whose jobs have no requested cancel yet."""
    ended_arrays: dict[str, str] = field(default_factory=dict)
    """Tenant by ended array with `program_once`, until its end is recorded."""
    pending_answers: dict[str, PendingAnswer] = field(default_factory=dict)
    """By command id."""
    quota_use: QuotaUse = field(default_factory=QuotaUse)
    waiting: WaitingJobs = field(default_factory=WaitingJobs)
    backoffs: dict[str, Backoff] = field(default_factory=dict)
    retry_times: list[tuple[int, str]] = field(default_factory=list)
    """A heap of (ms, job id); its first entry is never out of date."""
    answered: AnsweredCommands = field(default_factory=AnsweredCommands)

    @property
    def pool_name(self) -> str:
        return self.pool.pool if self.pool else ""

    def is_active(self, tenant: str) -> bool:
        """Return whether the tenant may submit."""
        noted = self.tenants.get(tenant)
        return noted is not None and noted.active
