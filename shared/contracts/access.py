"""Tenants, API keys, pools and endpoints: the commands and events of the access service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Name, Text, command, event
from shared.contracts.nodes import Backend

Role = Literal["viewer", "submitter", "operator", "admin"]
BasePolicy = Literal[
    "fcfs",
    "priority_class",
    "fair_share",
    "smallest_first",
    "sjf",
    "saf",
    "f1",
    "wfp3",
    "unicep",
    "multifactor",
    "qssf",
    "las",
    "gittins",
    "srtf",
    "srsf",
]
"""Base policies of a queue; `services/priority/core/keys.py` holds the formula of each."""
RuntimeSource = Literal["user", "history", "oracle"]
"""Source of the run times that a policy uses; `oracle` reads the simulated duration."""
QueueMode = Literal["strict", "skip", "easy"]
Preemption = Literal["class", "ranked"]
Solver = Literal["greedy", "cpsat"]
NEVER_S = 1e9
"""The longest time that a pool accepts, in cluster seconds: it switches the feature off."""
LOG_SCORE_MARGIN = 0.7
"""A `preempt_margin` where scores are logarithms: a factor of two between the keys."""
Shadow = Annotated[
    str, Field(max_length=71, pattern=r"^(learned:)?[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
]
"""The name of a base policy, or `learned:` and the name of a learned policy."""


class PoolSettings(Command):
    """The one declaration of the settings of a pool: name, type, default, bounds and meaning.

    A new setting is a field here and a `recorded` field of `PoolConfigured`; `make contracts`. The
    REST API takes it from here; flags and simulators read its default by `default_of`.
    """

    TYPE: ClassVar[str] = ""
    OWNER: ClassVar[str] = "access"
    pool: Name = Field(description="the pool")
    time_scale: float = Field(
        1.0, gt=0, le=1e7, description="cluster seconds per wall second; 1 in production"
    )
    backends: tuple[Backend, ...] = Field(
        ("virtual",), description="backends its nodes may use; `process` is retired"
    )
    lease_s: float = Field(
        30.0,
        gt=0,
        le=3600,
        description="nodes inside an executor (`virtual`): wall s after its last "
        "acknowledged heartbeat at which it has stopped its workers; lost after twice as long",
    )
    stop_after_s: Annotated[float, Field(ge=5, le=604800)] | Literal["keep"] = Field(
        600.0,
        description="nodes with an agent: wall s after the sending of the last acknowledged "
        "heartbeat at which their workers are killed; `keep`: they run on, whatever happens",
    )
    heartbeat_s: float = Field(5.0, ge=0.1, le=3600, description="s between heartbeats of an agent")
    request_timeout_s: float = Field(
        10.0, ge=0.1, le=3600, description="s until a request of an agent counts as lost"
    )
    reconnect_s: float = Field(
        10.0, ge=0.1, le=3600, description="longest s between two attempts of an agent to connect"
    )
    suspect_after_s: float = Field(
        30.0,
        gt=0,
        le=86400,
        description="nodes with an agent: wall s without a heartbeat until nothing new is placed",
    )
    kill_s: float = Field(
        15.0, ge=1, le=3600, description="s from a deadline until the last of its workers is dead"
    )
    clock_rate_bound: float = Field(
        1.25, ge=1, le=10, description="largest ratio of the rates of two machines' clocks"
    )
    slack_s: float = Field(
        5.0, ge=0, le=3600, description="s added to the silence after which a node is lost"
    )
    round_ms: int = Field(
        100, ge=1, le=60000, description="shortest interval between placement rounds, wall ms"
    )
    start_timeout_s: float = Field(
        60.0, gt=0, le=86400, description="wall s from JobPlaced until all workers must be ready"
    )
    base_policy: BasePolicy = Field("fair_share", description="base policy that orders the queue")
    learned: Name | None = Field(
        None,
        description="learned policy that re-ranks the base policy; absent: the base policy decides",
    )
    runtime: RuntimeSource = Field(
        "history", description="source of the run times that a policy uses"
    )
    shadows: tuple[Shadow, ...] = Field(
        (), max_length=8, description="policies that rank the same queue without effect"
    )
    queue_mode: QueueMode = Field(
        "skip", description="treatment of the jobs behind one that does not fit"
    )
    preemption: Preemption = Field(
        "class", description="`ranked`: also by rank within one priority class"
    )
    min_residency_s: float = Field(
        300.0,
        ge=0,
        le=1e9,
        description="cluster s that a job runs before it may be preempted by rank",
    )
    preempt_margin: float = Field(
        0.0, ge=0, le=1e9, description="score by which a job must exceed its victim's"
    )
    large_gang_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="share of the pool's GPUs above which a gang is large; while many gangs are "
        "large none of them is preempted by rank",
    )
    defragment_after_s: float = Field(
        1800.0,
        ge=0,
        le=NEVER_S,
        description="under `ranked`: cluster s that a job runs before defragmentation may "
        "migrate it; 1e9: never",
    )
    reserve_after_s: float | None = Field(
        None,
        ge=0,
        le=1e9,
        description="cluster s of waiting until GPUs are reserved; absent: never",
    )
    rank_ms: int = Field(
        1000, ge=0, le=60000, description="shortest interval between rankings, wall ms"
    )
    settle_ms: int = Field(
        0, ge=0, le=60000, description="wall ms between a change and its round, for ranks to arrive"
    )
    solver: Solver = Field(
        "cpsat", description="solver of contended rounds; greedy is always the fallback"
    )
    solver_ms: int = Field(
        500,
        ge=1,
        le=60000,
        description="time limit of the solver, wall ms; then greedy's plan is used",
    )
    half_life_s: float = Field(
        604800.0, gt=0, le=1e9, description="half-life of past usage in fair share, cluster s"
    )
    spot_gpus: float | None = Field(
        None, ge=0, description="static spot quota, GPUs; absent: unlimited"
    )


def default_of(setting: str) -> Any:
    """Return the default of a pool setting. Raises KeyError for an unknown one."""
    return PoolSettings.model_fields[setting].default


LEGACY_DEFAULTS: Final[Mapping[str, Any]] = {
    "large_gang_share": 1.0,
    "defragment_after_s": NEVER_S,
    "solver": "greedy",
}
"""Values of settings that an event lacks, where they are not the declared default: what pools did
before the setting existed. If a declared default changes, its old value is added."""


def recorded(setting: str, description: str | None = None) -> Any:
    """Return the field of an event for a setting, without bounds: old values stay readable."""
    declared = PoolSettings.model_fields[setting]
    default = LEGACY_DEFAULTS.get(setting, declared.default)
    return Field(default, description=description or declared.description)


@command
class ConfigurePool(PoolSettings):
    """Create a pool or change its settings; its lane is assigned once and never changes."""

    TYPE: ClassVar[str] = "pool.configure.v1"


@command
class RegisterTenant(Command):
    """Register a tenant, or change its default pool and weight."""

    TYPE: ClassVar[str] = "tenant.register.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="pool of submissions that name none")
    weight: float = Field(1.0, gt=0, le=1e6, description="its weight in fair share")


@command
class RetireTenant(Command):
    """Refuse further submissions of a tenant; its running jobs go on."""

    TYPE: ClassVar[str] = "tenant.retire.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")


@command
class CreateKey(Command):
    """Register an API key by its hash; the key itself is shown once, by its creator."""

    TYPE: ClassVar[str] = "key.create.v1"
    OWNER: ClassVar[str] = "access"
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="sha256 of the secret part")
    role: Role = Field(description="role of its bearer")
    tenant: Name | None = Field(
        None, description="tenant of its bearer; absent for operators and admins"
    )


@command
class RevokeKey(Command):
    """Revoke an API key."""

    TYPE: ClassVar[str] = "key.revoke.v1"
    OWNER: ClassVar[str] = "access"
    key_id: Name = Field(description="the key")


InputId = Annotated[str, Field(pattern=r"^[a-z]+/[0-9]{1,9}/[0-9]{1,15}/[0-9]{1,9}$")]
"""The id of an `InputQuarantined`: `ledger/partition/seq/index`."""


@command
class RetryInput(Command):
    """Give an input that was set aside to its decider again, once."""

    TYPE: ClassVar[str] = "input.retry.v1"
    OWNER: ClassVar[str] = "access"
    input_id: InputId = Field(description="id of its InputQuarantined")


@command
class SkipInput(Command):
    """Close an input that was set aside: it is never decided."""

    TYPE: ClassVar[str] = "input.skip.v1"
    OWNER: ClassVar[str] = "access"
    input_id: InputId = Field(description="id of its InputQuarantined")
    reason: Text = Field(min_length=1, description="free text for the audit")


@command
class ConfigureEndpoint(Command):
    """Create an LLM endpoint or change its settings."""

    TYPE: ClassVar[str] = "endpoint.configure.v1"
    OWNER: ClassVar[str] = "access"
    endpoint: Name = Field(description="a group of engine replicas")
    tokens_per_s: float = Field(gt=0, le=1e9, description="decode speed of the emulated engine")
    batch_tokens: int = Field(ge=1, le=10**9, description="tokens its running batch may hold")


class Attempt(Model):
    """A count of equal requests that a gateway refused."""

    principal: str = Field("", max_length=160, description="key or token; empty: not authenticated")
    action: str = Field("", max_length=128, description="method and route; empty: several routes")
    status: int = Field(ge=400, le=499, description="401 or 403")
    requests: int = Field(ge=1, description="number of requests")


@command
class NoteAttempts(Command):
    """Record the requests that a gateway refused lately."""

    TYPE: ClassVar[str] = "attempts.note.v1"
    OWNER: ClassVar[str] = "access"
    gateway: str = Field(max_length=64, description="the gateway that refused them")
    attempts: tuple[Attempt, ...] = Field(
        min_length=1, max_length=64, description="counts by principal, action and status"
    )


@event
class AttemptsRefused(Event):
    """A gateway refused requests that lacked a key, a role or a tenant."""

    TYPE: ClassVar[str] = "attempts.refused.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "gateway"
    PUBLIC: ClassVar[bool] = False
    gateway: str = Field(description="the gateway that refused them")
    attempts: tuple[Attempt, ...] = Field(description="counts by principal, action and status")


@event
class PoolConfigured(Event):
    """A pool was configured; each decider repeats the event in its own ledger."""

    TYPE: ClassVar[str] = "pool.configured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "priority",
        "placement",
        "failslow",
    )
    SUBJECT: ClassVar[str] = "pool"
    partition: int = Field(ge=0, description="lane of the pool")
    pool: Name = Field(description="the pool")
    time_scale: float = recorded("time_scale", "cluster seconds per wall second")
    backends: tuple[Backend, ...] = recorded("backends", "backends its nodes may use")
    lease_s: float = recorded("lease_s")
    stop_after_s: float | Literal["keep"] = recorded("stop_after_s")
    heartbeat_s: float = recorded("heartbeat_s")
    request_timeout_s: float = recorded("request_timeout_s")
    reconnect_s: float = recorded("reconnect_s")
    suspect_after_s: float = recorded("suspect_after_s")
    kill_s: float = recorded("kill_s")
    clock_rate_bound: float = recorded("clock_rate_bound")
    slack_s: float = recorded("slack_s")
    round_ms: int = recorded("round_ms")
    start_timeout_s: float = recorded(
        "start_timeout_s", "wall s from JobPlaced until all are ready"
    )
    base_policy: BasePolicy = recorded("base_policy")
    learned: str | None = recorded("learned", "learned policy that re-ranks the base policy")
    runtime: RuntimeSource = recorded("runtime", "source of run times")
    shadows: tuple[str, ...] = recorded("shadows", "policies that rank without effect")
    queue_mode: QueueMode = recorded("queue_mode", "treatment of jobs behind one that does not fit")
    preemption: Preemption = recorded("preemption", "by class alone, or also by rank")
    min_residency_s: float = recorded("min_residency_s", "cluster s before a preemption by rank")
    preempt_margin: float = recorded("preempt_margin")
    large_gang_share: float = recorded(
        "large_gang_share", "share of the pool above which a gang is large"
    )
    defragment_after_s: float = recorded(
        "defragment_after_s", "cluster s until defragmentation may migrate a job"
    )
    reserve_after_s: float | None = recorded("reserve_after_s", "cluster s until GPUs are reserved")
    rank_ms: int = recorded("rank_ms")
    settle_ms: int = recorded("settle_ms", "wall ms between a change and its round")
    solver: Solver = recorded("solver", "solver of contended rounds")
    solver_ms: int = recorded("solver_ms", "time limit of the solver, wall ms")
    half_life_s: float = recorded("half_life_s", "half-life of past usage, cluster s")
    spot_gpus: float | None = recorded("spot_gpus", "static spot quota, GPUs")


@event
class TenantRegistered(Event):
    """A tenant may submit jobs from now on."""

    TYPE: ClassVar[str] = "tenant.registered.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="pool of submissions that name none")
    weight: float = Field(1.0, description="its weight in fair share")


@event
class TenantRetired(Event):
    """A tenant may submit no more jobs."""

    TYPE: ClassVar[str] = "tenant.retired.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")


@event
class KeyCreated(Event):
    """An API key is valid from now on."""

    TYPE: ClassVar[str] = "key.created.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(description="sha256 of the secret part")
    role: Role = Field(description="role of its bearer")
    tenant: str | None = Field(None, description="tenant of its bearer")


@event
class KeyRevoked(Event):
    """An API key was revoked."""

    TYPE: ClassVar[str] = "key.revoked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="the key")


@event
class EndpointConfigured(Event):
    """An LLM endpoint was configured."""

    TYPE: ClassVar[str] = "endpoint.configured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access", "throttle")
    SUBJECT: ClassVar[str] = "endpoint"
    endpoint: Name = Field(description="a group of engine replicas")
    partition: int = Field(ge=0, description="lane of the endpoint")
    tokens_per_s: float = Field(description="decode speed of the emulated engine")
    batch_tokens: int = Field(description="tokens its running batch may hold")
