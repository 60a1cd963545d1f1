"""Server-sent events over real HTTP: own events only, resume without loss."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from shared.contracts.access import KeyCreated, KeyRevoked
from shared.contracts.admission import JobAdmitted
from shared.contracts.job_spec import JobSpec
from shared.contracts.keys import hash_secret
from shared.job_logs.chunk import JobKey, Run, Worker, chunk_of
from shared.job_logs.log_store import JobLogStore
from tests.patience import PATIENCE_S
from tests.services.gateway.events import event
from tests.services.gateway.stack import KEYS, Stack
from tests.shared.job_logs.printing import printed

Frame = dict[str, str]


async def frames(answer: aiohttp.ClientResponse) -> AsyncIterator[Frame]:
    frame: Frame = {}
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        if not text and "event" in frame:
            yield frame
            frame = {}
        elif text and not text.startswith(":"):
            name, _, value = text.partition(": ")
            frame[name] = value
        elif not text:
            frame = {}


async def opened(answer: aiohttp.ClientResponse) -> None:
    """Wait for the first frame: what happens after it belongs to the stream."""
    async with asyncio.timeout(PATIENCE_S):
        while await answer.content.readline() != b"\n":
            continue


async def take(answer: aiohttp.ClientResponse, count: int) -> list[Frame]:
    collected: list[Frame] = []
    async with asyncio.timeout(PATIENCE_S):
        async for frame in frames(answer):
            collected.append(frame)
            if len(collected) == count:
                break
    return collected


def subjects(frames: list[Frame]) -> list[str]:
    return [json.loads(frame["data"])["subject"] for frame in frames]


async def test_a_tenant_receives_its_own_events_as_they_happen(stack: Stack) -> None:
    async with stack.request("GET", "/v1/events") as answer:
        assert answer.status == 200 and answer.content_type == "text/event-stream"
        await opened(answer)
        await stack.put("events", 1, event("s1"), event("b", tenant="bob"), event("n", tenant=""))
        await stack.put("events", 2, event("s2"))
        frames = await take(answer, 2)
    assert sorted(subjects(frames)) == ["s1", "s2"]
    assert frames[0]["event"] == "job.held.v1"


async def test_an_operator_receives_all_events_and_may_filter_them(stack: Stack) -> None:
    query = "/v1/events?types=node.joined.v1"
    async with stack.request("GET", query, key="op") as answer:
        await opened(answer)
        await stack.put("events", 0, event("x"), event("node", "", "node.joined.v1"))
        assert subjects(await take(answer, 1)) == ["node"]


async def test_a_client_that_resumes_misses_no_event_and_receives_none_twice(stack: Stack) -> None:
    names = [f"r{n}" for n in range(30)]
    subjects_seen: list[str] = []
    last = ""
    async with stack.request("GET", "/v1/events") as answer:
        await opened(answer)
        for lane in range(3):
            await stack.put("events", lane, *(event(name) for name in names[lane::3]))
        frames = await take(answer, 7)
        subjects_seen, last = subjects(frames), frames[-1]["id"]
    while len(subjects_seen) < len(names):
        headers = {"Last-Event-ID": last}
        async with stack.request("GET", "/v1/events", headers=headers) as answer:
            frames = await take(answer, min(9, len(names) - len(subjects_seen)))
            subjects_seen, last = subjects_seen + subjects(frames), frames[-1]["id"]
    assert sorted(subjects_seen) == sorted(names)


async def test_an_invalid_event_id_is_refused(stack: Stack) -> None:
    for bad in ("x", "1.2", "1.2.3.-4", "1.2.3.4.5"):
        status, content, _ = await stack.call("GET", "/v1/events", headers={"Last-Event-ID": bad})
        assert (status, content["reason"]) == (422, "invalid")


async def test_a_stream_ends_once_its_key_is_revoked(stack: Stack) -> None:
    key = KeyCreated(key_id="gone-key", sha256=hash_secret("s"), role="viewer", tenant="ada")
    await stack.append("access", 0, key)
    KEYS["gone"] = "gone-key.s"
    async with asyncio.timeout(PATIENCE_S):
        while (await stack.call("GET", "/v1/pools", key="gone"))[0] == 401:
            await asyncio.sleep(0.05)
    async with stack.request("GET", "/v1/events", key="gone") as answer:
        await stack.append("access", 0, KeyRevoked(key_id="gone-key"))
        async with asyncio.timeout(PATIENCE_S):
            [end] = await take(answer, 1)
        assert (end["event"], json.loads(end["data"])) == ("end", {"reason": "key_revoked"})
    assert (await stack.call("GET", "/v1/pools", key="gone"))[0] == 401


async def test_logs_are_shown_once_each_and_followed(stack: Stack, tmp_path: Path) -> None:
    spec = JobSpec(name="logs")
    await stack.project(
        "admission", 1, 90, JobAdmitted(job_id="log1", tenant="ada", submitted_at=1, spec=spec)
    )
    await stack.put(
        "logs",
        1,
        printed(0, "one", "two", job="log1"),
        printed(0, "one", "two", job="log1"),
        b"\xff log1",
    )
    async with asyncio.timeout(PATIENCE_S):
        # The embedded broker may name an end before what was just appended.
        while len(lines := await lines_of(stack, "log1")) < 2:
            await asyncio.sleep(0.05)
    assert lines == ["one", "two"]
    path = "/v1/jobs/log1/logs?follow=true"
    async with stack.request("GET", path) as answer:
        assert answer.status == 200
        await stack.put("logs", 1, printed(2, "three", job="log1"))
        frames = await take(answer, 3)
    assert [json.loads(frame["data"])["text"] for frame in frames] == ["one", "two", "three"]
    assert (await stack.call("GET", "/v1/jobs/log1/logs", key="bob"))[0] == 404


async def test_stored_output_is_read_with_what_came_since_by_its_own_tenant(
    stack: Stack, tmp_path: Path
) -> None:
    spec, worker = JobSpec(name="kept"), Worker(1, 0)
    await stack.project(
        "admission", 1, 91, JobAdmitted(job_id="kept1", tenant="ada", submitted_at=1, spec=spec)
    )
    store, job = JobLogStore(str(stack.folder / "job-logs"), writes=True), JobKey(1, "ada", "kept1")
    runs = [Run(1, 2, ["two", "three"])]
    await store.put(job, chunk_of(worker, runs, is_last=False), runs)
    await stack.put("logs", 1, printed(4, "four", job="kept1"))
    async with asyncio.timeout(PATIENCE_S):
        while len(await lines_of(stack, "kept1")) < 3:
            await asyncio.sleep(0.05)
    path = "/v1/jobs/kept1/logs"
    status, content, _ = await stack.call("GET", f"{path}?tail=2")
    assert (status, [line["text"] for line in content["lines"]]) == (200, ["three", "four"])
    status, content, _ = await stack.call("GET", f"{path}?rank=0&attempt=1&from_line=0&tail=1")
    assert content["lines"] == [{"attempt": 1, "rank": 0, "line": 2, "text": "two", "missing": 2}]
    assert (await stack.call("GET", f"{path}?rank=1"))[1]["lines"] == []
    assert (await stack.call("GET", f"{path}?rank=1&from_line=3"))[0] == 422
    assert (await stack.call("GET", path, key="bob"))[0] == 404


async def lines_of(stack: Stack, job_id: str) -> list[str]:
    status, content, _ = await stack.call("GET", f"/v1/jobs/{job_id}/logs")
    assert status == 200, content
    return [line["text"] for line in content["lines"]]


async def test_64_streams_of_one_key_leave_places_for_everybody_else(stack: Stack) -> None:
    async with AsyncExitStack() as streams:
        answers = [
            await streams.enter_async_context(
                stack.request("GET", "/v1/events?subject=none", key="ada-view")
            )
            for _ in range(64)
        ]
        statuses = Counter(answer.status for answer in answers)
        assert statuses == {200: 16, 429: 48}
        problem = await answers[-1].json()
        assert problem["reason"] == "too_many_streams" and "at most 16" in problem["detail"]
        for other in ("ada", "bob", "op"):
            async with stack.request("GET", "/v1/events?subject=none", key=other) as answer:
                assert answer.status == 200
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with stack.request("GET", "/v1/events?subject=none", key="ada-view") as answer:
                if answer.status == 200:
                    break
