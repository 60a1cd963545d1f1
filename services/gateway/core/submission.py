"""Turns a submission, by REST or by Kafka, into the command that admission reads."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

from pydantic import Field

from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.named_pools import with_pools
from services.gateway.core.reserved_variables import variable_errors
from services.gateway.core.strict import Body, parse_body
from shared.contracts.base import JobId, Model, Name, Text
from shared.contracts.bounds import UNBOUNDED, TenantBounds
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import NO_RESOURCES, JobSpec


class Keyed(Model):
    """A body with a key under which it has its effect once."""

    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="key chosen by the sender; a repeat has no effect",
    )


class SubmissionFields(Keyed):
    """Fields of a submission beside the job's specification."""

    pool: Name | None = Field(None, description="pool; the tenant's default if not given")
    tenant: Name | None = Field(None, description="tenant; must be the sender's own")
    array_size: int = Field(
        1, ge=1, le=10000, description="number of copies; each has its index in BERTH_ARRAY_INDEX"
    )


class JobBody(SubmissionFields):
    """A submission with the specification in the field `spec`."""

    spec: JobSpec = Field(description="specification of the job")


class FlatJobBody(SubmissionFields, JobSpec):
    """A submission with the fields of the specification beside the others."""


class RetryRequest(Keyed):
    """Options of a repetition."""


class CancelRequest(Model):
    """Options of a cancellation."""

    pool: Name | None = Field(None, description="pool of the job, if Postgres is unavailable")
    reason: Text = Field("", description="reason, for the record")


class CancelBody(CancelRequest):
    """A request to cancel a job."""

    job_id: JobId = Field(description="id of the job")
    tenant: Name | None = Field(None, description="tenant; must be the sender's own")


class TenantMismatch(Exception):
    """The body names a tenant other than the sender's."""

    def __init__(self, named: str) -> None:
        self.error = FieldError(field="tenant", value=named, rule="must be the sender's own tenant")
        super().__init__(str(self.error))


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a request, according to the access ledger."""

    tenant: str
    default_pool: str
    bounds: TenantBounds = UNBOUNDED
    users: Container[str] = ()
    """Registered users, whose names are those of their keys and tokens alone."""


_SUBMISSION_FIELDS = frozenset(SubmissionFields.model_fields)


def parse_submission(body: Body) -> JobBody:
    """Return either form of a submission; errors name the fields as the sender wrote them."""
    if "spec" in body:
        nested = parse_body(JobBody, body)
        check_spec(nested.spec, "spec.")
        return nested
    flat = parse_body(FlatJobBody, body)
    spec = {name: getattr(flat, name) for name in flat.model_fields_set - _SUBMISSION_FIELDS}
    checked = JobSpec.model_validate(spec)
    check_spec(checked, "")
    return JobBody(
        spec=checked,
        idempotency_key=flat.idempotency_key,
        pool=flat.pool,
        tenant=flat.tenant,
        array_size=flat.array_size,
    )


def check_spec(spec: JobSpec, prefix: str) -> None:
    """Raise InvalidBody for what no node could do: a worker without resources, variables of Berth.

    It holds for new submissions alone: specs that an earlier release took are still read.
    """
    errors = variable_errors(spec.env, f"{prefix}env")
    if not spec.gang.has_resources:
        rule = NO_RESOURCES.removeprefix("0: ")
        errors.append(FieldError(field=f"{prefix}gang.gpus_per_worker", value=0, rule=rule))
    if errors:
        raise InvalidBody(errors)


def submit_job(
    body: JobBody, sender: Sender, pools: Mapping[str, int], key: str, *, by_operator: bool = False
) -> SubmitJob:
    """Return the command with tenant and pool of the sender; `key` applies if none is given."""
    check_tenant(body.tenant, sender)
    spec, named = with_pools(body.spec, body.pool, body.array_size)
    pool = resolve_pool(named, sender, pools)
    idempotency_key = body.idempotency_key or key
    return SubmitJob(
        job_id=derive_job_id(sender.tenant, pool, idempotency_key),
        tenant=sender.tenant,
        pool=pool,
        idempotency_key=idempotency_key,
        array_size=body.array_size,
        spec=spec,
        by_operator=by_operator,
    )


def cancel_job(body: CancelBody, sender: Sender) -> CancelJob:
    check_tenant(body.tenant, sender)
    return CancelJob(job_id=body.job_id, tenant=sender.tenant, reason=body.reason)


def resolve_pool(requested: str | None, sender: Sender, pools: Mapping[str, int]) -> str:
    pool = requested or sender.default_pool
    if pool not in pools:
        rule = "no such pool; `berth pools list` shows them"
        raise InvalidBody([FieldError(field="pool", value=pool, rule=rule)])
    return pool


def check_tenant(named: str | None, sender: Sender) -> None:
    if named is not None and named != sender.tenant:
        raise TenantMismatch(named)


def job_ids(command: SubmitJob) -> list[str]:
    """Return the ids of all copies; the copies of an array differ by their index."""
    if command.array_size == 1:
        return [command.job_id]
    return [f"{command.job_id}.{index}" for index in range(command.array_size)]
