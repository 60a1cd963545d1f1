"""Cancellation of jobs."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from berth_client.answers import CommandReceipt
from services.gateway.core.key_bounds import check_owner, user_of
from services.gateway.core.strict import parse_body
from services.gateway.core.submission import CancelRequest
from services.gateway.reads import queries
from services.gateway.requests.authorization import authorize
from services.gateway.requests.body import json_body
from services.gateway.requests.commands import accepted_response, lane_of_pool, send_command
from services.gateway.requests.current_job import stays
from services.gateway.responses.openapi import problem_responses, request_body
from services.gateway.responses.problem import ApiError, not_found, unavailable
from services.gateway.routes.jobs import Job
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.job_commands import CancelJob
from shared.contracts.registry import Bearer

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])


@router.delete(
    "/{job_id}",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(404, 422),
)
async def delete(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array, in any phase."""
    return await cancel(request, job_id)


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=CommandReceipt,
    responses=problem_responses(400, 404, 413, 415, 422),
    openapi_extra=request_body(CancelRequest, required=False),
)
async def cancel(request: Request, job_id: Job) -> Response:
    """Cancel a job, or every job of an array; the command is answered when the job has ended.

    A key or token with a user cancels that user's jobs alone: 403 `not_permitted` for others.
    """
    gateway = gateway_of(request)
    bearer = await authorize(request, "submitter")
    body = parse_body(CancelRequest, await json_body(request))
    lane = await _lane(gateway, bearer, job_id, body.pool)
    job_id, lane = await _where(gateway, bearer, job_id, lane)
    command = CancelJob(job_id=job_id, tenant=bearer.tenant, reason=body.reason)
    return accepted_response(
        await send_command(
            request,
            gateway,
            bearer,
            command,
            lane=lane,
            subject=job_id,
            span="cancel",
            pool=body.pool or "",
        )
    )


async def _where(gateway: Gateway, bearer: Bearer, job_id: str, lane: int) -> tuple[str, int]:
    """Return id and lane of the job where it is, in the pool to which it was transferred.

    One that is on its way is cancelled where it was, and once it arrives. While Postgres is away
    the job is taken to be where it was.
    """
    try:
        last = next(reversed(await stays(gateway, bearer, job_id)), None)
    except ApiError:
        return job_id, lane
    return (job_id, lane) if last is None else (last["job_id"], last["partition"])


async def _lane(gateway: Gateway, bearer: Bearer, job_id: str, pool: str | None) -> int:
    """Return the lane of the given pool, else of the job, else of the tenant's default pool."""
    if bearer.tenant is not None and user_of(bearer) is not None:
        return await _lane_of_own(gateway, bearer, job_id)
    if pool is not None:
        return lane_of_pool(gateway, pool)
    if (recent := gateway.recent.find(job_id, bearer.tenant)) is not None:
        return recent.lane
    try:
        row = await gateway.database.row(bearer, queries.LANE_OF_JOB, bearer.tenant, job_id)
    except ApiError:
        return _default_lane(gateway, bearer)
    if row is None:
        raise not_found("job")
    return int(str(row["partition"]))


async def _lane_of_own(gateway: Gateway, bearer: Bearer, job_id: str) -> int:
    """Return the lane of a job of the bearer's user.

    Raises NotPermitted for one of another user, and ApiError 503 where the user is not known: while
    Postgres is away.
    """
    row = await gateway.database.row(bearer, queries.LANE_OF_JOB, bearer.tenant, job_id)
    if row is not None:
        check_owner(bearer, str(row["user_id"]))
        return int(str(row["partition"]))
    recent = gateway.recent.find(job_id, bearer.tenant)
    if recent is None:
        raise not_found("job")
    check_owner(bearer, recent.user)
    return recent.lane


def _default_lane(gateway: Gateway, bearer: Bearer) -> int:
    if bearer.tenant is None:
        raise unavailable("reads_unavailable", "Postgres unavailable; name the pool")
    return lane_of_pool(gateway, gateway.access.sender(bearer.tenant).default_pool)
