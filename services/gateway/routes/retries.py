"""Repetition of ended jobs: a new job with the same specification."""

from __future__ import annotations

from uuid import uuid5

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Request, Response

from berth_client.answers import SubmissionReceipt
from services.gateway.core.key_bounds import check_owner, user_of
from services.gateway.core.strict import Body, parse_body
from services.gateway.core.submission import JobBody, RetryRequest, submit_job
from services.gateway.reads import queries
from services.gateway.reads.recorded_specs import SpecPosition
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import command_route
from services.gateway.requests.updates import require_finished
from services.gateway.responses.problem import ApiError, unavailable
from services.gateway.routes.jobs import Job, visible_job
from services.gateway.routes.submissions import idempotency_key, send_submission, sender_for
from services.gateway.wiring import Gateway
from shared.contracts.array_programs import array_id_of
from shared.contracts.identity import BERTH
from shared.contracts.job_spec import UNKNOWN_USER, JobSpec
from shared.contracts.registry import Bearer
from shared.ledger.errors import ArchiveUnreachable
from shared.projections.jobs import ENDED_PHASES

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
GONE = "its specification is not recorded any more: submit it again"


@router.post(
    "/{job_id}/retry",
    **command_route(RetryRequest, 404, 409, 410, required=False, receipt=SubmissionReceipt),
)
async def retry(request: Request, job_id: Job) -> Response:
    """Submit an ended job again, with its specification, command and environment too, in its pool.

    A key or token with a user repeats that user's jobs alone: 403 `not_permitted` for others.
    It is a new job with an id of its own; one of an array keeps its `BERTH_ARRAY_INDEX`. 409 where
    the job has not ended, 410 where its specification is not recorded any more, 429 while too many
    are read. A repeat with the same `Idempotency-Key` has no effect.
    """
    gateway, bearer, row = await visible_job(request, job_id, "submitter")
    job_id = str(row["job_id"])
    body = parse_body(RetryRequest, await json_body(request))
    check_owner(bearer, str(row["user_id"]))
    if row["phase"] not in ENDED_PHASES:
        rule = "one that has ended can be repeated; `berth cancel` ends it"
        raise ApiError(409, "job_not_ended", f"phase: {row['phase']}: {rule}")
    sender = sender_for(gateway.access, bearer, str(row["tenant"]))
    spec = await _spec_of(gateway, bearer, row)
    spec = spec.model_copy(update={"transferred": None})
    # A key is one of the repetitions of this job.
    key = str(uuid5(BERTH, f"{job_id}/{idempotency_key(request, body.idempotency_key)}"))
    if row["pool"] is None:
        raise unavailable("reads_unavailable", "the job's pool is not projected yet; retry")
    is_proven = sender.bounds.users == "authenticated" or spec.user in sender.users
    user = user_of(bearer)
    if user is not None or (is_proven and bearer.tenant):
        # The new job belongs to the user that repeats the old one.
        spec = spec.model_copy(update={"user": user or UNKNOWN_USER})
    if user is None and bearer.tenant:
        spec = spec.model_copy(update={"notify": ()})
    again = JobBody(spec=spec, pool=str(row["pool"]))
    by_operator = bearer.has_role("operator")
    command = submit_job(again, sender, gateway.access.pools(), key, by_operator=by_operator)
    if (index := row["array_index"]) is not None:
        require_finished(gateway.access.view)
        command = command.model_copy(update={"array_index": index})
    return await send_submission(request, gateway, bearer, command)


def subject_of(job_id: str, index: int | None) -> tuple[str, str]:
    """Return the job or array that is recorded with the specification, and its first job."""
    array = array_id_of(job_id, index)
    # A job that repeats one of an array has an index, and is of no array.
    return (job_id, job_id) if array in ("", job_id) else (array, f"{array}.0")


async def _spec_of(gateway: Gateway, bearer: Bearer, row: Body) -> JobSpec:
    """Return the whole specification of a job. Raises ApiError 410 and 503."""
    index = row["array_index"]
    subject, first = subject_of(str(row["job_id"]), None if index is None else int(str(index)))
    position = await gateway.database.row(bearer, queries.SPEC_POSITION, bearer.tenant, first)
    if position is None:
        raise ApiError(410, "spec_gone", GONE)
    at = SpecPosition(*(int(str(position[name])) for name in ("partition", "seq", "accepted_at")))
    try:
        spec = await gateway.specs.read(at, subject, str(row["tenant"]))
    except (KafkaError, OSError, TimeoutError, ArchiveUnreachable) as error:
        raise unavailable("broker_unavailable", type(error).__name__) from None
    if spec is None:
        raise ApiError(410, "spec_gone", GONE)
    return spec
