"""Who may do what, and which pools and endpoints there are."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.base import Command, Event, Model, Name, command, event
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
"""Classic orders of a queue; `services/priority/core/keys.py` holds the formula of each."""
RuntimeSource = Literal["user", "history", "oracle"]
"""Where a policy that uses a runtime takes it from; `oracle` reads the simulated duration."""
QueueMode = Literal["strict", "skip", "easy"]
Preemption = Literal["class", "ranked"]
NEVER_S = 1e9
"""The longest time that a pool may be told, for what is not to happen."""
Shadow = Annotated[
    str, Field(max_length=71, pattern=r"^(learned:)?[a-z0-9]([a-z0-9._-]*[a-z0-9])?$")
]
"""A classic policy by its name, or a learned one as `learned:` and its name."""


class PoolSettings(Command):
    """Fields that a pool has; shared by the wish and the fact."""

    TYPE: ClassVar[str] = ""
    OWNER: ClassVar[str] = "access"
    pool: Name = Field(description="the pool")
    time_scale: float = Field(
        1.0, gt=0, le=1e7, description="cluster seconds per wall second; 1 in production"
    )
    backends: tuple[Backend, ...] = Field(
        ("virtual",), description="how workers may run; `process` must be asked for"
    )
    lease_s: float = Field(30.0, gt=0, le=3600, description="wall s of silence before NodeLost")
    round_ms: int = Field(100, ge=1, le=60000, description="at most one placement round per this")
    start_timeout_s: float = Field(
        60.0, gt=0, le=86400, description="wall s from JobPlaced to all workers ready"
    )
    base_policy: BasePolicy = Field("fair_share", description="the classic order of the queue")
    learned: Name | None = Field(
        None, description="the learned policy that re-ranks the base; absent: the base decides"
    )
    runtime: RuntimeSource = Field(
        "history", description="where a policy that uses a runtime takes it from"
    )
    shadows: tuple[Shadow, ...] = Field(
        (), max_length=8, description="policies that rank the same queue without acting"
    )
    queue_mode: QueueMode = Field(
        "skip", description="what a job that does not fit does to those behind it"
    )
    preemption: Preemption = Field(
        "class", description="`ranked`: also by rank inside a class, within its gates"
    )
    min_residency_s: float = Field(
        300.0, ge=0, le=1e9, description="cluster s that a started job runs before rank stops it"
    )
    preempt_margin: float = Field(
        0.0, ge=0, le=1e9, description="score by which a job must lead the one it stops"
    )
    large_gang_share: float = Field(
        0.25, gt=0, le=1, description="of the pool; where many gangs are larger rank stops no such"
    )
    defragment_after_s: float = Field(
        1800.0,
        ge=0,
        le=NEVER_S,
        description="under `ranked`: cluster s that a job runs before it "
        "may move so that a larger one fits; 1e9: none does",
    )
    reserve_after_s: float | None = Field(
        None, ge=0, le=1e9, description="cluster s of waiting after which GPUs are kept; absent: no"
    )
    rank_ms: int = Field(1000, ge=0, le=60000, description="at most one ranking per this, wall ms")
    settle_ms: int = Field(
        0, ge=0, le=60000, description="wall ms from a change to its round, for ranks to arrive"
    )
    solver: Literal["greedy", "cpsat"] = Field(
        "cpsat", description="who plans a contended round; greedy is always the fallback"
    )
    solver_ms: int = Field(
        500, ge=1, le=60000, description="wall ms until greedy's plan of the same view is taken"
    )
    half_life_s: float = Field(
        604800.0, gt=0, le=1e9, description="cluster s in which past use counts half"
    )
    spot_gpus: float | None = Field(None, ge=0, description="static spot quota; absent: no bound")


@command
class ConfigurePool(PoolSettings):
    """Make a pool, or change it; its lane is given once and for ever."""

    TYPE: ClassVar[str] = "pool.configure.v1"


@command
class RegisterTenant(Command):
    """Let a tenant in."""

    TYPE: ClassVar[str] = "tenant.register.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="where a submit goes that names none")
    weight: float = Field(1.0, gt=0, le=1e6, description="share of a pool it should get")


@command
class RetireTenant(Command):
    """Take no more of a tenant's submissions; what runs goes on."""

    TYPE: ClassVar[str] = "tenant.retire.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")


@command
class CreateKey(Command):
    """Register an API key by its hash; the key itself is shown once, by who made it."""

    TYPE: ClassVar[str] = "key.create.v1"
    OWNER: ClassVar[str] = "access"
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="of the secret part")
    role: Role = Field(description="what its bearer may do")
    tenant: Name | None = Field(None, description="whose; absent for operators and admins")


@command
class RevokeKey(Command):
    """A key opens nothing from now on."""

    TYPE: ClassVar[str] = "key.revoke.v1"
    OWNER: ClassVar[str] = "access"
    key_id: Name = Field(description="the key")


@command
class ConfigureEndpoint(Command):
    """Make an LLM endpoint, or change it."""

    TYPE: ClassVar[str] = "endpoint.configure.v1"
    OWNER: ClassVar[str] = "access"
    endpoint: Name = Field(description="a group of engine replicas")
    tokens_per_s: float = Field(gt=0, le=1e9, description="decode speed of the emulated engine")
    batch_tokens: int = Field(ge=1, le=10**9, description="tokens its running batch may hold")


class Attempt(Model):
    """Requests alike that were turned away at the door, counted."""

    principal: str = Field("", max_length=160, description="key or token; empty: nobody known")
    action: str = Field("", max_length=128, description="method and route; empty: of many routes")
    status: int = Field(ge=400, le=499, description="401 or 403")
    requests: int = Field(ge=1, description="how many")


@command
class NoteAttempts(Command):
    """What a gateway turned away lately, for the record."""

    TYPE: ClassVar[str] = "attempts.note.v1"
    OWNER: ClassVar[str] = "access"
    gateway: str = Field(max_length=64, description="which gateway")
    attempts: tuple[Attempt, ...] = Field(min_length=1, max_length=64, description="by kind")


@event
class AttemptsRefused(Event):
    """Requests that a gateway turned away for want of a key, a role or a tenant."""

    TYPE: ClassVar[str] = "attempts.refused.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "gateway"
    PUBLIC: ClassVar[bool] = False
    gateway: str = Field(description="which gateway")
    attempts: tuple[Attempt, ...] = Field(description="by kind")


@event
class PoolConfigured(Event):
    """A pool and its lane; a decider restates it in its own ledger."""

    TYPE: ClassVar[str] = "pool.configured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = (
        "access",
        "admission",
        "priority",
        "placement",
        "failslow",
    )
    SUBJECT: ClassVar[str] = "pool"
    partition: int = Field(ge=0, description="its lane")
    pool: Name = Field(description="the pool")
    time_scale: float = Field(1.0, description="cluster seconds per wall second")
    backends: tuple[Backend, ...] = Field(("virtual",), description="how workers may run")
    lease_s: float = Field(30.0, description="wall s of silence before NodeLost")
    round_ms: int = Field(100, description="at most one placement round per this")
    start_timeout_s: float = Field(60.0, description="wall s from JobPlaced to all ready")
    base_policy: BasePolicy = Field("fair_share", description="the classic order of the queue")
    learned: str | None = Field(None, description="the learned policy that re-ranks the base")
    runtime: RuntimeSource = Field("history", description="where a runtime is taken from")
    shadows: tuple[str, ...] = Field((), description="policies that rank without acting")
    queue_mode: QueueMode = Field("skip", description="what a job that does not fit does")
    preemption: Preemption = Field("class", description="by class alone, or by rank too")
    min_residency_s: float = Field(300.0, description="cluster s before rank stops a started job")
    preempt_margin: float = Field(0.0, description="score by which a job leads the one it stops")
    large_gang_share: float = Field(1.0, description="of the pool: gangs above it are large")
    defragment_after_s: float = Field(NEVER_S, description="cluster s until a job may move")
    reserve_after_s: float | None = Field(None, description="cluster s until GPUs are kept")
    rank_ms: int = Field(1000, description="at most one ranking per this, wall ms")
    settle_ms: int = Field(0, description="wall ms from a change to its round")
    solver: Literal["greedy", "cpsat"] = Field("greedy", description="who plans a contended round")
    solver_ms: int = Field(500, description="wall ms until greedy's plan is taken")
    half_life_s: float = Field(604800.0, description="cluster s in which past use counts half")
    spot_gpus: float | None = Field(None, description="static spot quota")


@event
class TenantRegistered(Event):
    """A tenant may submit."""

    TYPE: ClassVar[str] = "tenant.registered.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="where a submit goes that names none")
    weight: float = Field(1.0, description="share of a pool it should get")


@event
class TenantRetired(Event):
    """A tenant may submit no more."""

    TYPE: ClassVar[str] = "tenant.retired.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")


@event
class KeyCreated(Event):
    """An API key is good from now on."""

    TYPE: ClassVar[str] = "key.created.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(description="of the secret part")
    role: Role = Field(description="what its bearer may do")
    tenant: str | None = Field(None, description="whose")


@event
class KeyRevoked(Event):
    """An API key opens nothing from now on."""

    TYPE: ClassVar[str] = "key.revoked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="the key")


@event
class EndpointConfigured(Event):
    """An LLM endpoint and its lane."""

    TYPE: ClassVar[str] = "endpoint.configured.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access", "throttle")
    SUBJECT: ClassVar[str] = "endpoint"
    endpoint: Name = Field(description="a group of engine replicas")
    partition: int = Field(ge=0, description="its lane")
    tokens_per_s: float = Field(description="decode speed of the emulated engine")
    batch_tokens: int = Field(description="tokens its running batch may hold")
