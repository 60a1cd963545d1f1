"""Tenants, keys, pools, the audit and inputs that could not be decided."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from berth_client.answers.users import JobBounds

Role = Literal["viewer", "submitter", "operator", "admin"]


class Tenant(TypedDict):
    """A tenant with what it has used."""

    tenant: str
    default_pool: str
    weight: float
    active: bool
    """False once it is retired."""
    registered_at: int
    gpu_ms: int
    """GPU-milliseconds that its jobs have used."""
    succeeded: int
    failed: int
    cancelled: int
    preempted: int
    number: int | None
    """Its number for ever; null until this gateway has read of the tenant."""
    llm_weight: float | None


class Quota(TypedDict):
    """Quota of a tenant in one pool, in GPUs."""

    tenant: str
    pool: str | None
    guaranteed_gpus: float
    borrow_gpus: float | None
    """Null: not limited."""
    spot_gpus: float | None


class FairShare(TypedDict):
    """The share of a tenant in a pool by its weight, beside what it holds and used."""

    pool: str
    tenant: str
    weight: float
    share: float
    """By weight, among the active tenants that may use the pool."""
    entitled_gpus: float
    """That share of the GPUs of the pool's nodes."""
    guaranteed_gpus: float | None
    """Of its quota; null without one."""
    borrow_gpus: float | None
    used_gpus: float
    waiting_gpus: float
    """Of jobs in the queue."""
    decayed_gpu_hours: float
    """Of late: each `half_life_s` of the pool halves what was used."""
    use_share: float | None
    """Its part of what all tenants used of late; null for a tenant's key."""
    factor: float | None
    """Slurm's fair-share factor: 1 without use, 0.5 where use and share are even."""


class Bounds(JobBounds):
    """Bounds of the jobs of a tenant."""

    users: str
    """`any` or `authenticated`: a job names no user but that of its key or token."""
    max_streams: int
    max_key_streams: int


class OpenJobs(TypedDict):
    """The open jobs of a tenant in one pool."""

    pool: str | None
    jobs: int
    running: int
    gpus: float


class TenantUse(TypedDict):
    """Use of the bounds of a tenant."""

    open_jobs: list[OpenJobs]
    streams: int
    """Open streams at this gateway."""


class QuotaDetail(Quota):
    """Quota of a tenant with the version of its settings."""

    version: str
    """Version of the settings, for `if_version`."""


class TenantDetail(Tenant):
    """A tenant with its quota in each pool, its bounds, and what it uses of them."""

    quota: list[QuotaDetail]
    version: str
    """Version of the settings, for `if_version`."""
    bounds: Bounds
    use: TenantUse


class Key(TypedDict):
    """A key, without its secret."""

    key_id: str
    tenant: str | None
    role: Role
    models: list[str]
    """Models that it may call; empty: those of its tenant."""
    user: str | None
    pools: list[str]
    highest_class: str | None
    max_job_gpus: float | None


class Secret(TypedDict):
    """A secret of a tenant, without its value."""

    id: str
    """`tenant/name`."""
    tenant: str
    name: str
    version: int
    set_at: int
    set_by: str
    """Principal that set it."""
    key_id: str
    """Key that encrypts it."""


class Webhook(TypedDict):
    """A webhook of a tenant, and what became of what was sent to it."""

    id: str
    """`tenant/name`."""
    tenant: str
    name: str
    url: str
    events: list[str]
    """State changes of jobs that are sent."""
    pools: list[str]
    """Pools of the jobs; empty: every pool."""
    created_by: str
    """Principal that created it."""
    created_at: int
    waiting: int
    """Events that wait for their next attempt."""
    delivered: int
    given_up: int
    """Events that no attempt of a day could deliver."""
    dropped: int
    """Events that were not kept: too many waited, or the webhook was disabled."""
    failing_since: int
    """First attempt after the last success; 0: the last attempt was one."""
    disabled_at: int
    """Since then nothing is sent; a test that succeeds enables it again."""
    last_at: int
    last_error: str
    """Why the last attempt failed; empty: it did not."""
    tested_at: int
    """When the last test was requested that has a result."""
    test_result: str
    """`delivered`, or why not."""


class Rotation(TypedDict):
    """The result of a rotation of keys of secrets."""

    key_id: str
    """Key that encrypts now."""
    rewrapped: int
    """Secrets that this request brought under it."""
    left: int
    """Secrets that are still under another key; repeat the request."""
    lost: list[str]
    """`tenant/name` of secrets that no key of the file decrypts: set them again."""


class Rights(Bounds):
    """Rights of the bearer of a key."""

    submit: bool
    max_gpus: float
    """GPUs of its user in one pool at once, beyond which its jobs wait; 262144: not bounded."""


class WhoAmI(TypedDict):
    """The bearer of the key or token of a request."""

    principal: str
    role: Role
    tenant: str | None
    """Null for operators and admins."""
    user: str | None
    """Whom its jobs belong to; null where they name one."""
    models: list[str]
    may: Rights | None
    """Bounds that hold for it; null for operators and admins, who have none."""
    expires_at: int | None
    installation: str


class Pool(TypedDict):
    """A pool."""

    pool: str
    partition: int
    """Its lane, for ever."""
    time_scale: float
    settings: dict[str, object]
    """As the body of `POST /v1/pools`; tenants do not see `tenants`."""
    version: str
    """Version of the settings, for `if_version`."""
    reason: str
    """Reason of their last change, as it was given; empty: none."""
    release: int
    """Release to which an upgrade is finished; 0: none that says so."""
    open: bool
    """The bearer may submit to it."""


class AuditEntry(TypedDict):
    """An action, or denied requests, of a principal."""

    entry_id: str
    at: int
    principal: str
    action: str
    object: str
    whose: str
    """Tenant of the object."""
    outcome: str
    """`accepted`, `refused`, or `requested` for a cancel of a running job."""
    reason: str
    requests: int


class DeadLetter(TypedDict):
    """An input that could not be decoded, or was quarantined."""

    dead_id: str
    ledger: str
    topic: str
    partition: int
    log_offset: int
    reason: str
    sha256: str
    """Of its bytes."""
    tenant: str
    at: int
    message_id: str
    message_type: str
    state: str
    """`rejected`, `open`, `retrying`, `skipped`, `retried`, `raised_again` or `not_retained`."""
    settled: bool
    decision: str
    decision_reason: str
    decided_at: int
