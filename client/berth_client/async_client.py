"""The client of the REST API for asyncio: the methods of `Client`, awaited."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from berth_client import answers, calls
from berth_client.async_session import AsyncSession
from berth_client.bundles import uploading
from berth_client.calls import PAGE, Json, get
from berth_client.following import NewLines, Report, ignore
from berth_client.waiting import ANSWER_S, LOOK_S, JobWait, is_answered

if TYPE_CHECKING:
    pass

T = TypeVar("T")


class AsyncClient(AsyncSession):
    """A client of the gateway at `url`, by default that of `BERTH_URL` or of the local stack.

    Requests that can be repeated are, up to `retries` times, after outages and refused rates. A
    request without a result raises BerthError.
    """

    async def submit(
        self,
        spec: Mapping[str, object],
        *,
        tenant: str | None = None,
        pool: str | None = None,
        array_size: int | None = None,
        idempotency_key: str | None = None,
    ) -> answers.SubmissionReceipt:
        """Submit a job, or an array; `spec` is as in a job file, with `name` and `command`."""
        return await self.send(calls.submit(spec, tenant, pool, array_size, idempotency_key))

    async def upload(self, folder: Path, tenant: str | None = None, report: Report = ignore) -> str:
        """Upload a folder, and return the name of its bundle, for the field `bundle` of a spec.

        Parts that the installation has are not sent again. Raises BadFolder.
        """
        with uploading(folder, tenant, report) as upload:
            while (call := upload.following()) is not None:
                upload.note(await self.send(call))
            return upload.bundle

    async def retry(
        self, job_id: str, idempotency_key: str | None = None
    ) -> answers.SubmissionReceipt:
        """Submit a job that has ended again, as a new one."""
        return await self.send(calls.retry(job_id, idempotency_key))

    async def cancel(
        self, job_id: str, reason: str = "", pool: str | None = None
    ) -> answers.CommandReceipt:
        """Cancel a job or an array; the pool is needed while Postgres is away."""
        return await self.send(calls.cancel(job_id, reason, pool))

    async def wait_command(
        self, receipt: answers.CommandReceipt, timeout_s: float = ANSWER_S
    ) -> None:
        """Wait for the decision about a command. Raises BerthError for a refusal."""
        ends_s = time.monotonic() + timeout_s
        call = calls.command(receipt["command_id"])
        while not is_answered(await self._look(call), call, time.monotonic() > ends_s):
            await asyncio.sleep(LOOK_S)

    async def wait(self, job_id: str, timeout_s: float | None = None) -> answers.JobDetail:
        """Wait until a job has ended, and return it. Raises TimeoutError, and BerthError for one
        that does not exist."""
        wait = JobWait(job_id, timeout_s)
        while True:
            seen = await self._look(calls.job(job_id))
            if (job := wait.ended(seen)) is not None:
                return job
            await asyncio.sleep(wait.pause_s)

    def jobs(
        self,
        *,
        tenant: str | None = None,
        phase: answers.Phase | None = None,
        name: str | None = None,
        pool: str | None = None,
        array: str | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[answers.Job]:
        """Yield jobs, newest first."""
        return self.pages(calls.jobs(tenant, phase, name, pool, array), limit)

    async def job(self, job_id: str) -> answers.JobDetail:
        return await self.send(calls.job(job_id))

    async def why(self, job_id: str) -> answers.Why:
        """Return why a job waited, and what comes next."""
        return await self.send(calls.why(job_id))

    async def timeline(self, job_id: str) -> answers.JobHistory:
        """Return all decisions about a job in order."""
        return await self.send(calls.timeline(job_id))

    async def trace(self, job_id: str) -> answers.JobTrace:
        return await self.send(calls.trace(job_id))

    async def logs(
        self,
        job_id: str,
        tail: int = 1000,
        *,
        rank: int | None = None,
        attempt: int | None = None,
        from_line: int | None = None,
    ) -> list[answers.JobLine]:
        """Return the last lines of a job's output, or of one rank or attempt.

        With `from_line`, which needs `rank` and `attempt`: the first `tail` lines from it on.
        """
        answer = await self.send(calls.logs(job_id, tail, rank, attempt, from_line))
        return answer["lines"]

    async def follow_logs(self, job_id: str) -> AsyncIterator[answers.JobLine]:
        """Yield the output of a job until the job and its output have ended."""
        path, new = f"/v1/jobs/{calls.part(job_id)}/logs", NewLines()
        async for event in self.follow(path, {"follow": True}):
            line = json.loads(event.data) if event.name == "line" else None
            if line is not None and new.missing_before(line) is not None:
                yield line

    async def events(
        self, types: str = "", subject: str = "", since: str = ""
    ) -> AsyncIterator[Json]:
        """Yield accepted events as CloudEvents, from now or from behind the position `since`."""
        query = {"types": types, "subject": subject, "since": since}
        async for event in self.follow("/v1/events", query):
            if event.name != "end":
                yield json.loads(event.data)

    def nodes(self, pool: str | None = None) -> AsyncIterator[answers.Node]:
        return self.pages(get("/v1/nodes", pool=pool, limit=PAGE))

    async def cordon(self, node_id: str, reason: str = "") -> answers.CommandReceipt:
        """Mark a node unschedulable."""
        return await self.send(calls.change_node(node_id, "cordon", reason))

    async def uncordon(self, node_id: str, reason: str = "") -> answers.CommandReceipt:
        return await self.send(calls.change_node(node_id, "uncordon", reason))

    async def drain(self, node_id: str, reason: str = "") -> answers.CommandReceipt:
        """Cordon a node and move its jobs to others."""
        return await self.send(calls.change_node(node_id, "drain", reason))

    async def queue(self, pool: str | None = None) -> list[answers.QueuedJob]:
        """Return up to 1000 waiting jobs in the order of priority."""
        return await _all(self.pages(get("/v1/queue", pool=pool, limit=PAGE)))

    async def shares(self, pool: str | None = None) -> list[answers.FairShare]:
        """Return what tenants may expect of each pool, beside what they hold and used."""
        return await _all(self.pages(get("/v1/shares", pool=pool)))

    async def pools(self) -> list[answers.Pool]:
        return await _all(self.pages(get("/v1/pools")))

    def tenants(self) -> AsyncIterator[answers.Tenant]:
        """Yield the tenants that the bearer sees, with their use."""
        return self.pages(get("/v1/tenants", limit=PAGE))

    async def tenant(self, name: str) -> answers.TenantDetail:
        """Return a tenant with its quota, its bounds and what it uses of them."""
        return await self.send(calls.tenant(name))

    def users(self, tenant: str | None = None) -> AsyncIterator[answers.User]:
        """Yield the users of a tenant, or of all that the bearer sees, with bounds and use."""
        return self.pages(get("/v1/users", tenant=tenant, limit=PAGE))

    async def llm_usage(self, by: str = "tenant", since: int = 0) -> list[answers.LlmUse]:
        """Return requests, tokens and cost by tenant, user, application, model, endpoint, day or
        hour."""
        return await _all(self.pages(get("/v1/llm/usage", by=by, since=since, limit=PAGE)))

    def usage(self, by: str = "tenant", **filters: object) -> AsyncIterator[answers.JobUse]:
        """Yield what jobs used by tenant, user, pool, day or month, filtered by `since` and
        `until` (ms), `tenant`, `user` and `pool`."""
        return self.pages(get("/v1/usage", by=by, **filters, limit=PAGE))

    async def whoami(self) -> answers.WhoAmI:
        return await self.send(calls.whoami())


async def _all(rows: AsyncIterator[T]) -> list[T]:
    return [row async for row in rows]
