"""Terminals in workers of jobs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from time import monotonic
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from pydantic import Field, field_validator
from starlette.requests import ClientDisconnect

from services.gateway.core.key_bounds import check_owner
from services.gateway.core.strict import parse_body, parse_object
from services.gateway.reads import queries
from services.gateway.reads.database import Row
from services.gateway.requests.authorization import authorize, charge
from services.gateway.requests.commands import decide_by_access, send_access_command
from services.gateway.requests.current_job import current_id
from services.gateway.responses.openapi import problem_responses
from services.gateway.responses.problem import ApiError, not_found
from services.gateway.routes.jobs import Job
from services.gateway.streams.terminal_entry import entered
from services.gateway.streams.terminal_relay import (
    MEDIA,
    Account,
    BadFrame,
    Limits,
    TerminalResponse,
    frames,
)
from services.gateway.wiring import Gateway, gateway_of
from shared.contracts.base import Model
from shared.contracts.keys import hash_secret
from shared.contracts.registry import Bearer
from shared.contracts.terminals import MAX_COMMAND_CHARS, MAX_WORDS, CloseTerminal, OpenTerminal

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
OPENING = b"H"
"""Kind of the first frame."""
OPENING_S = 10.0

log = logging.getLogger(__name__)


class TerminalOpening(Model):
    """The first frame of a terminal, as JSON."""

    command: tuple[str, ...] = Field(
        (), max_length=MAX_WORDS, description="argv; empty: a shell of the worker's user"
    )
    worker: int = Field(0, ge=0, lt=2**31, description="rank of the worker")
    tty: bool = Field(False, description="a terminal; else pipes")
    term: str = Field("", max_length=64, pattern=r"^[A-Za-z0-9._+-]*$", description="TERM")
    rows: int = Field(24, ge=1, le=65535, description="rows of the window")
    columns: int = Field(80, ge=1, le=65535, description="columns of the window")

    @field_validator("command")
    @classmethod
    def _fits(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if any("\x00" in word for word in command):
            raise ValueError("NUL is not allowed")
        if sum(map(len, command)) > MAX_COMMAND_CHARS:
            raise ValueError(f"at most {MAX_COMMAND_CHARS} characters are allowed")
        return command


@router.post(
    "/{job_id}/terminal",
    response_class=Response,
    responses={
        **problem_responses(400, 404, 409, 415, 422),
        200: {"content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}}},
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {MEDIA: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def open_terminal(request: Request, job_id: Job) -> Response:
    """Run a program in a worker of a running job, with its input and output in this request.

    Body and response are frames: kind (1 byte), length (4, big endian), payload (at most 64 KiB).
    The first one of the body is `H`, JSON with `command`, `worker`, `tty`, `term`, `rows`,
    `columns`; then `I` input, `E` its end, `W` rows and columns (2 bytes each). The response has
    `O` output, `R` errors, `P` nothing, and at last `X`, JSON with `reason`, `detail`, `exit_code`.
    Who may cancel the job may do this, in pools with `terminals`. It ends with the request.
    """
    gateway, bearer = gateway_of(request), await authorize(request, "submitter")
    if request.headers.get("content-type", "") != MEDIA:
        raise ApiError(415, "unsupported_media_type", f"send {MEDIA}")
    job_id = await current_id(gateway, bearer, job_id)
    row = await _running_job(gateway, bearer, job_id)
    received = frames(_chunks(request))
    opening = await _opening(received)
    if opening.worker >= (workers := int(str(row["workers"]))):
        detail = f"worker: {opening.worker}; job {job_id} has {workers}, from 0"
        raise ApiError(422, "unknown_worker", detail)
    charge(gateway, bearer, gateway.terminals, "terminals")
    terminal_id, token = secrets.token_hex(16), secrets.token_urlsafe(32)
    command = OpenTerminal(
        terminal_id=terminal_id,
        job_id=job_id,
        tenant=str(row["tenant"]),
        pool=str(row["pool"]),
        worker=opening.worker,
        program=(opening.command or ("",))[0][:256],
        opened_by=bearer.principal,
        token_sha256=hash_secret(token),
    )
    async with AsyncExitStack() as stack:
        stack.callback(gateway.streams.take(bearer))
        await _decide(request, bearer, command)
        closing = _Closing(request, bearer, command, monotonic())
        try:
            requested = opening.model_dump(exclude={"worker"})
            executor = await stack.enter_async_context(
                entered(gateway.settings, terminal_id, token, requested)
            )
        except Exception as error:
            reason = error.reason if isinstance(error, ApiError) else "failed"
            await closing.note(Account(reason))
            raise
        held = stack.pop_all()

    async def on_end(account: Account) -> None:
        try:
            await held.aclose()
        finally:
            await closing.note(account)

    limits = Limits(
        gateway.settings.terminal_idle_s,
        gateway.settings.terminal_longest_s,
        lambda: gateway.access.is_live(bearer) and _permits(gateway, command.pool),
    )
    return TerminalResponse(executor, received, limits, on_end)


class _Closing(NamedTuple):
    """A terminal that was opened, until its end is noted."""

    request: Request
    bearer: Bearer
    command: OpenTerminal
    opened_s: float

    async def note(self, account: Account) -> None:
        """Send access the end; without a broker the record of the opening stands alone."""
        opened = self.command
        command = CloseTerminal(
            terminal_id=opened.terminal_id,
            job_id=opened.job_id,
            tenant=opened.tenant,
            reason=account.reason,
            exit_code=account.exit_code,
            open_ms=round((monotonic() - self.opened_s) * 1000),
            sent_bytes=account.sent_bytes,
            received_bytes=account.received_bytes,
        )
        try:
            await send_access_command(self.request, self.bearer, command, opened.job_id)
        except ApiError as error:
            log.warning("end of a terminal not noted", extra={"reason": error.reason})


async def _running_job(gateway: Gateway, bearer: Bearer, job_id: str) -> Row:
    """Return a job of the bearer's whose workers run on nodes. Raises ApiError, NotPermitted."""
    row = await gateway.database.row(bearer, queries.JOB_OF_TERMINAL, bearer.tenant, job_id)
    if row is None:
        raise not_found("job")
    check_owner(bearer, str(row["user_id"]))
    if row["phase"] != "running":
        detail = f"job {job_id}: {row['phase']}; a running one is required"
        raise ApiError(409, "job_not_running", detail)
    if row["backend"] == "virtual":
        detail = f"job {job_id}: pool {row['pool']} has virtual nodes, on which no program runs"
        raise ApiError(409, "virtual_pool", detail)
    return row


async def _opening(received: AsyncIterator[tuple[bytes, bytes]]) -> TerminalOpening:
    """Return the first frame. Raises ApiError, NotJson, InvalidBody."""
    try:
        async with asyncio.timeout(OPENING_S):
            kind, payload = await anext(received)
    except TimeoutError:
        raise ApiError(408, "too_slow", f"first frame: none within {OPENING_S:g} s") from None
    except (StopAsyncIteration, BadFrame) as error:
        raise ApiError(400, "malformed", str(error) or "first frame: missing") from None
    if kind != OPENING:
        raise ApiError(400, "malformed", f"first frame: {kind!r}; {OPENING!r} is required")
    return parse_body(TerminalOpening, parse_object(payload))


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body, and end once the client is gone: the end of a body alone is no end."""
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        return
    while (await request.receive())["type"] != "http.disconnect":
        continue


async def _decide(request: Request, bearer: Bearer, command: OpenTerminal) -> None:
    """Have access open the terminal. Raises ApiError."""
    await decide_by_access(
        request,
        bearer.principal,
        command,
        command.job_id,
        tenant=bearer.tenant or "",
        pool=command.pool,
    )


def _permits(gateway: Gateway, pool: str) -> bool:
    configured = gateway.access.view.pools.get(pool)
    return configured is not None and configured.terminals
