"""Output of pods is read beside the looks: none waits for a kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from services.executor.engines.engine import OutputUnreadable
from services.executor.engines.kubernetes import logs as module
from services.executor.engines.kubernetes.access import Access
from services.executor.engines.kubernetes.api import KubernetesApi
from services.executor.engines.kubernetes.logs import LONGEST_WAIT_S, PodLogs, log_path
from tests.patience import until
from tests.services.executor.core.kubernetes.objects import ended_pod, gang_pod


class FakeKubelet:
    """Has the log of one pod, of which it gives `parts`; between two of them it waits."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts
        self.goes_on = asyncio.Event()
        self.requests = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        response = web.StreamResponse()
        await response.prepare(request)
        for part in self.parts:
            await response.write(part)
            await self.goes_on.wait()
        return response


class RefusingKubelet(FakeKubelet):
    """Refuses all requests, in the words of an API without the right to read logs."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        status = {"kind": "Status", "reason": "Forbidden", "message": "pods/log is forbidden"}
        return web.json_response(status, status=403)


class BreakingKubelet(FakeKubelet):
    """Gives one part to each request, and breaks the connection of all but the last."""

    def __init__(self, *parts: bytes) -> None:
        super().__init__(*parts)
        self.since: list[str | None] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.since.append(request.query.get("sinceTime"))
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(self.parts[len(self.since) - 1])
        if len(self.since) < len(self.parts):
            await self.goes_on.wait()
            assert request.transport is not None
            request.transport.abort()
        return response


@asynccontextmanager
async def logs_of(kubelet: FakeKubelet) -> AsyncIterator[PodLogs]:
    app = web.Application()
    app.router.add_get(log_path(gang_pod(0)), kubelet.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        api = KubernetesApi(Access(str(server.make_url("")).rstrip("/"), None))
        logs = PodLogs(api)
        try:
            yield logs
        finally:
            logs.keep(())
            kubelet.goes_on.set()
            await api.close()


async def test_the_rest_of_an_ended_worker_is_awaited_by_no_look() -> None:
    kubelet = FakeKubelet(b"one\n", b"two\n")
    over = ended_pod(0, 0)
    async with logs_of(kubelet) as logs:
        await until(lambda: logs.read(over, 0) == b"one\n")
        assert logs.read(over, 4) is None, "there is more, which is not there yet"
        kubelet.goes_on.set()
        await until(lambda: logs.read(over, 4) == b"two\n")
        await until(lambda: logs.read(over, 8) == b"")
    assert kubelet.requests == 1


async def test_the_first_stream_of_a_pod_waits_for_gangs_that_are_started_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kubelet, now_s = FakeKubelet(b"one\n"), [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now_s[0])
    async with logs_of(kubelet) as logs:
        logs.let_wait()
        assert logs.read(gang_pod(0), 0) == b""
        assert logs.read(ended_pod(0, 0), 0) is None, "the rest of it is still to be read"
        now_s[0] += LONGEST_WAIT_S
        logs.let_wait()
        await until(lambda: logs.read(gang_pod(0), 0) == b"one\n")


async def test_a_worker_that_is_quiet_keeps_its_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    kubelet = FakeKubelet(b"one\n", b"two\n")
    limits: list[float | None] = []
    real = aiohttp.ClientTimeout

    def timeout(**limit: Any) -> aiohttp.ClientTimeout:
        limits.append(limit.get("sock_read"))
        return real(**limit)

    monkeypatch.setattr(aiohttp, "ClientTimeout", timeout)
    async with logs_of(kubelet) as logs:
        await until(lambda: logs.read(gang_pod(0), 0) == b"one\n")
        assert logs.read(gang_pod(0), 4) == b""
        kubelet.goes_on.set()
        await until(lambda: logs.read(gang_pod(0), 4) == b"two\n")
    assert set(limits) == {None}, "no silence ends a log"
    assert kubelet.requests == 1, "one that was opened again may miss what was rotated away"


async def test_a_stream_that_breaks_goes_on_from_the_time_of_its_last_line() -> None:
    times = [f"2026-01-01T00:00:0{second}.000000000Z" for second in (1, 2, 3)]
    one, two, three = (f"{at} {number}\n".encode() for number, at in enumerate(times))
    kubelet = BreakingKubelet(one + two, two + three)
    over = ended_pod(0, 0)
    async with logs_of(kubelet) as logs:
        await until(lambda: logs.read(over, 0) == b"0\n1\n")
        kubelet.goes_on.set()
        await until(lambda: logs.read(over, 4) == b"2\n")
        await until(lambda: logs.read(over, 6) == b"")
    assert kubelet.since == [None, times[1]]


async def test_a_log_that_ends_while_its_container_runs_is_followed_on() -> None:
    kubelet = BreakingKubelet(b"2026-01-01T00:00:01Z one\n")
    async with logs_of(kubelet) as logs:
        await until(lambda: logs.read(gang_pod(0), 0) == b"one\n")
        kubelet.parts = (*kubelet.parts, b"2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n")
        await until(lambda: logs.read(gang_pod(0), 4) == b"two\n")
    assert kubelet.since == [None, "2026-01-01T00:00:01Z"]


async def test_a_log_that_is_refused_is_unreadable_in_the_words_of_the_api() -> None:
    kubelet = RefusingKubelet()
    async with logs_of(kubelet) as logs:
        assert logs.read(gang_pod(0), 0) is None, "no kubelet has answered yet"
        for tries in (1, 2):
            await until(lambda: kubelet.requests == tries)  # noqa: B023
            with pytest.raises(OutputUnreadable, match="pods/log is forbidden"):
                await until(lambda: bool(logs.read(gang_pod(0), 0)))


async def test_last_lines_that_are_not_there_yet_hold_up_no_look() -> None:
    kubelet = FakeKubelet(b"sorry\n")
    over = ended_pod(0, 1)
    async with logs_of(kubelet) as logs:
        assert await logs.tails([over]) == {}
        assert await logs.tails([over]) == {}
        kubelet.goes_on.set()
        async with asyncio.timeout(10):
            while not (tails := await logs.tails([over])):
                await asyncio.sleep(0.01)
        assert tails == {over.uid: ("sorry",)}
    assert kubelet.requests == 1


async def test_a_stream_that_breaks_while_its_program_is_quiet_is_no_failure() -> None:
    kubelet = BreakingKubelet(*[b""] * 1000)
    kubelet.goes_on.set()
    async with logs_of(kubelet) as logs:
        await until(lambda: logs.read(gang_pod(0), 0) == b"" and len(kubelet.since) >= 3)
