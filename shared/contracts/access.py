"""Tenants, API keys, decisions on quarantined inputs: commands and events of access."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from shared.contracts.base import ABSENT, VERSION, Command, Event, Model, Name, Text, command, event
from shared.contracts.bounds import MOST_GPUS, TenantBounds
from shared.contracts.endpoints import ModelName
from shared.contracts.job_spec import PriorityClass

Role = Literal["viewer", "submitter", "operator", "admin"]


@command
class RegisterTenant(TenantBounds, Command):
    """Register a tenant. One that exists keeps weights and bounds that are defaults here."""

    TYPE: ClassVar[str] = "tenant.register.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="pool of submissions that name none")
    weight: float = Field(1.0, gt=0, le=1e6, description="its weight in fair share")
    llm_weight: float = Field(
        1.0, gt=0, le=1e6, description="its weight among the tenants of LLM endpoints"
    )
    if_version: str | None = Field(
        None,
        pattern=VERSION,
        description=f"version of the tenant that this is based on, `{ABSENT}` for a new one; "
        "refused if it has another; absent: no condition",
    )


@command
class RetireTenant(Command):
    """Refuse further submissions of a tenant and delete its secrets; its running jobs go on."""

    TYPE: ClassVar[str] = "tenant.retire.v1"
    OWNER: ClassVar[str] = "access"
    tenant: Name = Field(description="the tenant")


class KeyBounds(Model):
    """Bounds of a key within its tenant, by REST: keys are not used on the broker."""

    user: Name | None = Field(
        None, description="person or robot that its jobs belong to; absent: jobs name one freely"
    )
    pools: tuple[Name, ...] = Field(
        (), max_length=64, description="pools that it may use; empty: those of its tenant"
    )
    highest_class: PriorityClass | None = Field(
        None, description="highest priority class of its jobs; absent: that of its tenant"
    )
    max_job_gpus: float | None = Field(
        None, ge=0, le=MOST_GPUS, description="most GPUs of one job; absent: as of its tenant"
    )


@command
class CreateKey(KeyBounds, Command):
    """Register an API key by its hash; the key itself is shown once, by its creator."""

    TYPE: ClassVar[str] = "key.create.v1"
    OWNER: ClassVar[str] = "access"
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="sha256 of the secret part")
    role: Role = Field(description="role of its bearer")
    tenant: Name | None = Field(
        None, description="tenant of its bearer; absent for operators and admins"
    )
    models: tuple[ModelName, ...] = Field(
        (), max_length=64, description="models that it may call; empty: those of its tenant"
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
    """Give a quarantined input to its decider again, once."""

    TYPE: ClassVar[str] = "input.retry.v1"
    OWNER: ClassVar[str] = "access"
    input_id: InputId = Field(description="id of its InputQuarantined")


@command
class SkipInput(Command):
    """Close a quarantined input: it is never decided."""

    TYPE: ClassVar[str] = "input.skip.v1"
    OWNER: ClassVar[str] = "access"
    input_id: InputId = Field(description="id of its InputQuarantined")
    reason: Text = Field(min_length=1, description="free text for the audit")


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
class TenantRegistered(Event):
    """A tenant may submit jobs from now on."""

    TYPE: ClassVar[str] = "tenant.registered.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")
    default_pool: Name = Field(description="pool of submissions that name none")
    weight: float = Field(1.0, description="its weight in fair share")
    llm_weight: float = Field(1.0, description="its weight among the tenants of LLM endpoints")
    number: int | None = Field(
        None,
        ge=0,
        description="its number for ever, from which its uid on nodes follows; absent in older "
        "records: tenants are numbered in the order in which they were first registered",
    )
    bounds: TenantBounds | None = Field(
        None, description="bounds of its submissions; absent: none, as in earlier releases"
    )


@event
class TenantRetired(Event):
    """A tenant may submit no more jobs and has no secrets; its keys end if the name is registered
    again."""

    TYPE: ClassVar[str] = "tenant.retired.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "tenant"
    tenant: Name = Field(description="the tenant")


@event
class KeyCreated(KeyBounds, Event):
    """An API key is valid from now on."""

    TYPE: ClassVar[str] = "key.created.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="public first part of the key")
    sha256: str = Field(description="sha256 of the secret part")
    role: Role = Field(description="role of its bearer")
    tenant: str | None = Field(None, description="tenant of its bearer")
    models: tuple[ModelName, ...] = Field(
        (), description="models that it may call; empty: those of its tenant"
    )


@event
class KeyRevoked(Event):
    """An API key was revoked."""

    TYPE: ClassVar[str] = "key.revoked.v1"
    LEDGERS: ClassVar[tuple[str, ...]] = ("access",)
    SUBJECT: ClassVar[str] = "key_id"
    PUBLIC: ClassVar[bool] = False
    key_id: Name = Field(description="the key")
