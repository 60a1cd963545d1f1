"""The client of the REST API for asyncio: the methods of `Client`, awaited."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from berth_client import answers, calls, transport
from berth_client.bundles import Sent, not_reported, packed
from berth_client.calls import PAGE, Call, Json, Query, get
from berth_client.errors import BerthError
from berth_client.following import AGAIN_S, AWAY_S, Continuation, NewLines, Report, ignore
from berth_client.place import Place
from berth_client.transport import RETRIES, StreamEvent
from berth_client.waiting import ANSWER_S, LOOK_S, JobWait, is_answered, place_of

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


class AsyncClient:
    """A client of the gateway at `url`, by default that of `BERTH_URL` or of the local stack.

    Requests that can be repeated are, up to `retries` times, after outages and refused rates. A
    request without a result raises BerthError.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        ca: str | None = None,
        folder: Path | None = None,
        retries: int = RETRIES,
    ) -> None:
        self._connect(place_of(url, key, ca, folder), retries)

    def _connect(self, place: Place, retries: int) -> None:
        self.place = place
        self._retries = retries
        self._options = transport.options_of(place)
        self._opened: httpx2.AsyncClient | None = None

    @property
    def _http(self) -> httpx2.AsyncClient:
        if self._opened is None:
            import httpx2

            trust = transport.trust_of(self.place)
            self._opened = httpx2.AsyncClient(**self._options, verify=trust)
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()
            self._opened = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def send(self, call: Call[T]) -> T:
        """Send any request and return its answer."""
        return await self._send(call)

    async def pages(
        self, call: Call[answers.Page[T]], limit: int | None = None
    ) -> AsyncIterator[T]:
        """Yield the rows of a list, page by page, at most `limit`."""
        following: Call[answers.Page[T]] | None = call
        left = limit
        while following is not None:
            page = await self.send(following)
            rows = page["items"] if left is None else page["items"][:left]
            for row in rows:
                yield row
            left = None if left is None else left - len(rows)
            following = calls.following(following, page) if left is None or left else None

    def stream(
        self, path: str, query: Query | None = None, *, alive: bool = False
    ) -> AsyncIterator[StreamEvent]:
        """Yield server-sent events until the stream ends, by an event `end`.

        With `alive` also the gateway's keep-alive comments, as events `alive` without data.
        """
        return self._stream(Call("GET", path, query or {}), alive)

    async def follow(
        self, path: str, query: Query | None = None, report: Report = ignore, away_s: float = AWAY_S
    ) -> AsyncIterator[StreamEvent]:
        """Yield the events of a stream up to its event `end`; one that breaks off is opened again.

        A stream whose events have ids goes on behind the last one, another begins anew. Raises
        BerthError if the first attempt fails, or after `away_s` seconds without an answer.
        """
        continuation = Continuation(query or {}, report, away_s)
        while True:
            try:
                async for event in self._stream(Call("GET", path, continuation.query), True):
                    if continuation.note(event):
                        yield event
                        if event.name == "end":
                            return
            except BerthError as error:
                continuation.endure(error)
            await asyncio.sleep(AGAIN_S)

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

    async def upload(
        self, folder: Path, tenant: str | None = None, report: Sent = not_reported
    ) -> str:
        """Upload a folder, and return the name of its bundle, for the field `bundle` of a spec.

        Parts that the installation has already are not sent again; `report` gets the packed bundle
        and the number of parts that are left. Raises BadFolder.
        """
        with packed(folder) as bundle:
            call = calls.bundle(bundle.manifest, tenant)
            answer = await self.send(call)
            missing = answer["missing"]
            for index, name in enumerate(missing):
                report(bundle, len(missing) - index)
                await self.send(calls.bundle_part(name, bundle.part(name), tenant))
            if missing:
                answer = await self.send(call)
            if answer["missing"]:
                raise BerthError(503, "bundles_unreachable", "parts that were sent are missing")
            report(bundle, 0)
            return answer["bundle"]

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

    async def logs(self, job_id: str, tail: int = 1000) -> list[answers.JobLine]:
        """Return the last lines of a job's output."""
        answer = await self.send(calls.logs(job_id, tail))
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

    async def pools(self) -> list[answers.Pool]:
        return await _all(self.pages(get("/v1/pools")))

    def tenants(self) -> AsyncIterator[answers.Tenant]:
        """Yield the tenants that the bearer sees, with their use."""
        return self.pages(get("/v1/tenants", limit=PAGE))

    async def tenant(self, name: str) -> answers.TenantDetail:
        """Return a tenant with its quota, its bounds and what it uses of them."""
        return await self.send(calls.tenant(name))

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

    async def _look(self, call: Call[T]) -> T | BerthError:
        """Return the answer, or the error of one that may come later."""
        try:
            return await self._send(call)
        except BerthError as error:
            if error.status != 404 and not error.is_temporary:
                raise
            return error

    async def _send(self, call: Call[T]) -> T:
        attempt = 0
        while True:
            try:
                answer: T = await self._exchange(call)
                return answer
            except BerthError as error:
                if not call.repeatable or not error.is_temporary or attempt == self._retries:
                    raise
                await asyncio.sleep(transport.pause_s(error, attempt))
            attempt += 1

    async def _exchange(self, call: Call[Any]) -> Any:
        http, options = self._http, transport.request_of(call)
        with transport.failures(self.place.url):
            response = await http.request(call.method, call.path, **options)
        return transport.content_of(response)

    async def _stream(self, call: Call[Any], alive: bool) -> AsyncIterator[StreamEvent]:
        http, options, reader = self._http, transport.request_of(call), transport.EventReader()
        stream = http.stream(call.method, call.path, timeout=transport.STREAM_TIMEOUT_S, **options)
        with transport.failures(self.place.url):
            async with stream as response:
                if response.status_code >= 400:
                    await response.aread()
                    transport.content_of(response)
                async for raw in response.aiter_bytes():
                    for event in reader.feed(raw):
                        if alive or event.name != "alive":
                            yield event
                reader.check_end()


async def _all(rows: AsyncIterator[T]) -> list[T]:
    return [row async for row in rows]
