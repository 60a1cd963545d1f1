"""Submission of jobs."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query, Request, Response

from berth_client.answers import SubmissionReceipt
from services.gateway.access import AccessDirectory
from services.gateway.core.field_errors import FieldError, InvalidBody
from services.gateway.core.key_bounds import NotPermitted, check_mails, permitted, user_of
from services.gateway.core.named_pools import check_pools
from services.gateway.core.named_secrets import check_secrets, known_secrets
from services.gateway.core.submission import (
    FlatJobBody,
    JobBody,
    Sender,
    TenantMismatch,
    job_ids,
    parse_submission,
    submit_job,
)
from services.gateway.kafka.outbox import OutgoingCommand
from services.gateway.reads.queue_starts import Kind
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import (
    COMMANDS,
    accepted_response,
    append_command,
    new_command_id,
)
from services.gateway.responses.openapi import problem_responses, request_body
from services.gateway.responses.problem import ApiError
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Name
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import UNKNOWN_USER
from shared.contracts.registry import Bearer

TENANT_REQUIRED = (
    "tenant is required with an operator key: `berth submit --tenant TENANT`; "
    "`berth tenants list` shows them"
)

OfTenant = Annotated[
    Name | None, Query(description="its tenant; needed with a key that belongs to none")
]

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.post(
    "",
    status_code=202,
    response_model=SubmissionReceipt,
    responses=problem_responses(400, 413, 415, 422),
    openapi_extra=request_body(FlatJobBody, JobBody),
)
async def submit(request: Request) -> Response:
    """Submit a job, or an array. A repeat with the same `Idempotency-Key` (or field
    `idempotency_key`) and the same body has no effect and returns the same job id.

    `start` is when a job like it will start, where the tenant has one that waits: its interval of
    80 %, and the share of the pool's intervals that held. The job's own follows in `why` and in
    `job.start-estimated.v1`."""
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_submission(await json_body(request))
    sender = sender_for(gateway.access, bearer, body.tenant)
    key = idempotency_key(request, body.idempotency_key)
    by_operator = bearer.has_role("operator")
    command = submit_job(body, sender, gateway.access.pools(), key, by_operator=by_operator)
    return await send_submission(request, gateway, bearer, command)


async def send_submission(
    request: Request, gateway: Gateway, bearer: Bearer, command: SubmitJob
) -> Response:
    """Append the submission if the bearer's bounds permit it; return the response with its ids.

    Raises NotPermitted, and InvalidBody for a pool that it could not run in, or a secret or bundle
    that its tenant does not have.
    """
    command = permitted(command, bearer, gateway.access.sender(command.tenant))
    check_pools(command, gateway.access.view.pools)
    await require_address(gateway.access, bearer, command)
    await require_secrets(gateway.access, command)
    await require_bundle(gateway, command)
    lane = gateway.access.pools()[command.pool]
    outgoing = OutgoingCommand(
        new_command_id(),
        command,
        command.job_id,
        command.tenant,
        command.pool,
        principal=bearer.principal,
        access_next=gateway.access.next,
    )
    start = gateway.starts.read(bearer, Kind(command.tenant, lane, command.spec.gang.gpus))
    ticket = await append_command(
        request,
        gateway,
        "submit",
        COMMANDS,
        lane,
        outgoing,
        {"job.id": command.job_id, "tenant.id": command.tenant, "pool.id": command.pool},
    )
    gateway.recent.note(command, lane)
    return accepted_response(
        SubmissionReceipt(
            **ticket,
            job_id=command.job_id,
            job_ids=job_ids(command),
            idempotency_key=command.idempotency_key,
            pool=command.pool,
            start=await gateway.starts.answer(start),
        )
    )


async def require_secrets(access: AccessDirectory, command: SubmitJob) -> None:
    """Raise InvalidBody for a secret that the tenant does not have, also not since a moment.

    Where `access` cannot be read to its end the executor finds it out.
    """
    for is_last in (False, True):
        known = known_secrets(access.view, command.tenant)
        if known is None:
            return
        try:
            check_secrets(command.spec.env, known, command.tenant)
            return
        except InvalidBody:
            if is_last:
                raise
            if not await access.catch_up():
                return


async def require_address(access: AccessDirectory, bearer: Bearer, command: SubmitJob) -> None:
    """Raise NotPermitted for mails to a user without an address, also not since a moment.

    An operator submits for the user that the job names.
    """
    user = user_of(bearer)
    if bearer.tenant is None and command.spec.user != UNKNOWN_USER:
        user = command.spec.user
    try:
        check_mails(command, user, access.view.secrets.of(command.tenant))
    except NotPermitted:
        await access.catch_up()
        check_mails(command, user, access.view.secrets.of(command.tenant))


async def require_bundle(gateway: Gateway, command: SubmitJob) -> None:
    """Raise InvalidBody for a bundle that the tenant has not uploaded, or that was removed."""
    bundle = command.spec.bundle
    if bundle and not await gateway.bundles.has(command.tenant, bundle):
        rule = f"tenant {command.tenant} has no such bundle, or not any more"
        raise InvalidBody([FieldError(field="spec.bundle", value=bundle, rule=rule)])


def owner_of(bearer: Bearer, named: str | None) -> str | None:
    """Return the bearer's own tenant, or for an operator the one that is named.

    Raises TenantMismatch.
    """
    if named is not None and bearer.tenant not in (None, named):
        raise TenantMismatch(named)
    return bearer.tenant or named


def sender_for(access: AccessDirectory, bearer: Bearer, named: str | None) -> Sender:
    """Return the sender: the bearer's own tenant, or for an operator the tenant that is named."""
    tenant = bearer.tenant or named
    if tenant is None:
        raise InvalidBody([FieldError(field="tenant", rule=TENANT_REQUIRED)])
    if not access.view.is_active(tenant):
        detail = f"tenant not registered or retired: {tenant}"
        # A tenant's own key does not register tenants.
        advice = f"; `berth tenants add {tenant} --pool POOL` registers it"
        raise ApiError(403, "unknown_tenant", detail + ("" if bearer.tenant else advice))
    return access.sender(tenant)


def idempotency_key(request: Request, named: str | None) -> str:
    """Return the key from header or field; without either every request is a new submission."""
    header = request.headers.get("idempotency-key")
    if header is None:
        return named or str(uuid4())
    if not 1 <= len(header) <= 128:
        raise InvalidBody(
            [FieldError(field="Idempotency-Key", rule="must have 1 to 128 characters")]
        )
    if named not in (None, header):
        raise InvalidBody(
            [FieldError(field="idempotency_key", rule="differs from the header Idempotency-Key")]
        )
    return header
