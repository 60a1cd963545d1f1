"""From what a sender wrote to the command that admission reads: the same for REST and Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.strict import Body, parse_body
from shared.contracts.base import JobId, Model, Name, Text
from shared.contracts.identity import derive_job_id
from shared.contracts.jobs import CancelJob, JobSpec, SubmitJob


class SubmissionFields(Model):
    """What stands around a job's specification in a submission."""

    idempotency_key: str | None = Field(
        None, min_length=1, max_length=128, description="the sender's own key: a repeat is free"
    )
    pool: Name | None = Field(None, description="where to run; absent: the tenant's default")
    tenant: Name | None = Field(None, description="whose; must be the sender's own")
    array_size: int = Field(1, ge=1, le=10000, description="copies; index in BERTH_ARRAY_INDEX")


class JobBody(SubmissionFields):
    """A submission with its specification in a field of its own."""

    spec: JobSpec = Field(description="the job")


class FlatJobBody(SubmissionFields, JobSpec):
    """A submission with the fields of its specification beside the others."""


class CancelRequest(Model):
    """How to stop a job."""

    pool: Name | None = Field(None, description="its pool, where that is not known")
    reason: Text = Field("", description="for the record")


class CancelBody(CancelRequest):
    """A wish to stop a job."""

    job_id: JobId = Field(description="the job")
    tenant: Name | None = Field(None, description="whose; must be the sender's own")


class TenantMismatch(Exception):
    """The body names a tenant that is not the sender."""

    def __init__(self, named: str) -> None:
        self.fault = FieldError(field="tenant", value=named, rule="is not the sender's tenant")
        super().__init__(str(self.fault))


@dataclass(frozen=True, slots=True)
class Sender:
    """Who asks, as the access ledger knows them."""

    tenant: str
    default_pool: str


_AROUND = frozenset(SubmissionFields.model_fields)


def parse_submission(body: Body) -> JobBody:
    """Both spellings of a submission; faults are named as the sender spelled them."""
    if "spec" in body:
        return parse_body(JobBody, body)
    flat = parse_body(FlatJobBody, body)
    spec = {name: getattr(flat, name) for name in flat.model_fields_set - _AROUND}
    return JobBody(
        spec=JobSpec.model_validate(spec),
        idempotency_key=flat.idempotency_key,
        pool=flat.pool,
        tenant=flat.tenant,
        array_size=flat.array_size,
    )


def submit_job(body: JobBody, sender: Sender, pools: Mapping[str, int], key: str) -> SubmitJob:
    """The command, stamped with the sender's tenant and the pool; `key` serves if none is given."""
    check_tenant(body.tenant, sender)
    pool = resolve_pool(body.pool, sender, pools)
    chosen = body.idempotency_key or key
    return SubmitJob(
        job_id=derive_job_id(sender.tenant, pool, chosen),
        tenant=sender.tenant,
        pool=pool,
        idempotency_key=chosen,
        array_size=body.array_size,
        spec=body.spec,
    )


def cancel_job(body: CancelBody, sender: Sender) -> CancelJob:
    check_tenant(body.tenant, sender)
    return CancelJob(job_id=body.job_id, tenant=sender.tenant, reason=body.reason)


def resolve_pool(asked: str | None, sender: Sender, pools: Mapping[str, int]) -> str:
    pool = asked or sender.default_pool
    if pool not in pools:
        raise InvalidBody([FieldError(field="pool", value=pool, rule="no such pool")])
    return pool


def check_tenant(named: str | None, sender: Sender) -> None:
    if named is not None and named != sender.tenant:
        raise TenantMismatch(named)


def job_ids(command: SubmitJob) -> list[str]:
    """Of every copy: an array's copies are told apart by their index."""
    if command.array_size == 1:
        return [command.job_id]
    return [f"{command.job_id}.{index}" for index in range(command.array_size)]
