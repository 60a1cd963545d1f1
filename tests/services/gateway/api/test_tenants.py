"""Every route that reads, for random pairs of tenants: no response names another tenant's data."""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import suppress

import pytest

from services.gateway.reads import database, job_queries, llm_queries, queries
from shared.contracts.access import KeyCreated, TenantRegistered
from shared.contracts.admission import JobAdmitted, QuotaChanged
from shared.contracts.attempts import JobPreempted
from shared.contracts.command_answers import CommandAccepted
from shared.contracts.faults import FaultSuspected
from shared.contracts.job_spec import JobSpec
from shared.contracts.keys import hash_secret
from shared.contracts.llm import LlmRequestQueued
from shared.contracts.placement import Allocation, JobEnqueued, JobHeld, JobPlaced
from shared.contracts.ranking import QueueRanked, Ranked
from shared.contracts.registry import Bearer
from shared.contracts.rejected import InputRejected
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import KEYS, Stack, as_gateway

NAMES = ("qa-red", "qb-green", "qc-blue", "qd-grey")
PAIRS = 12
FOREIGN = {
    "{job_id}": "{name}-waits",
    "{tenant}": "{name}",
    "{command_id}": "{name}-c",
    "{node_id}": "{name}",
    "{dead_id}": "{name}",
    "{endpoint}": "{name}",
    "{request_id}": "{name}-r",
}
QUERIES = (
    "/v1/jobs?tenant={name}",
    "/v1/jobs?name={name}",
    "/v1/jobs?array={name}-waits",
    "/v1/allocations?job={name}-runs&released=true",
    "/v1/jobs?after=9999:{name}-waits",
    "/v1/tenants?after={name}",
    "/v1/llm/requests?tenant={name}",
    "/v1/llm/requests/{name}-r?tenant={name}",
    "/v1/events?since=start&subject={name}-waits",
)

UNFILTERED: dict[str, tuple[object, ...]] = {
    "JOBS": (None,) * 6,
    "QUEUE": (None,),
    "ALLOCATIONS": (None, None, True, None),
    "FAULTS": (None,) * 5,
    "LLM_REQUESTS": (None,) * 6,
    "DEAD": (True, None, None),
    "TENANTS": (None,),
}
"""Values of each query between the tenant and the limit."""


@pytest.fixture(scope="module")
def filled(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    for number, name in enumerate(NAMES):
        KEYS[name] = f"{name}-key.s"
        await stack.append(
            "access",
            0,
            TenantRegistered(tenant=name, default_pool="main"),
            KeyCreated(
                key_id=f"{name}-key", sha256=hash_secret("s"), role="submitter", tenant=name
            ),
        )
        await rows_of(stack, name, 500 + 10 * number)
    ranked = tuple(Ranked(job_id=f"{name}-waits", score=1) for name in NAMES)
    await stack.project(
        "priority", 1, 490, QueueRanked(base_policy="fcfs", waiting=4, ranked=ranked)
    )
    async with asyncio.timeout(PATIENCE_S):
        while (await stack.call("GET", "/v1/jobs", key=NAMES[-1]))[0] != 200:
            await asyncio.sleep(0.05)


async def rows_of(stack: Stack, name: str, seq: int) -> None:
    spec = JobSpec(name=f"{name}-name", user=f"{name}-user")
    jobs = (f"{name}-waits", f"{name}-runs")
    other = NAMES[(NAMES.index(name) + 1) % len(NAMES)]
    await stack.project("access", 0, seq, TenantRegistered(tenant=name, default_pool="main"))
    await stack.project(
        "admission",
        1,
        seq,
        *(JobAdmitted(job_id=job, tenant=name, submitted_at=seq, spec=spec) for job in jobs),
        CommandAccepted(command_id=f"{name}-c", command_type="t", tenant=name, of=jobs[0]),
        QuotaChanged(tenant=name, guaranteed_gpus=8),
        InputRejected(
            topic=f"submissions.{name}",
            partition=0,
            offset=seq,
            reason="not JSON",
            sha256="0" * 64,
            tenant=name,
        ),
    )
    await stack.project(
        "placement",
        1,
        seq,
        *(JobEnqueued(job_id=job, tenant=name, submitted_at=seq, spec=spec) for job in jobs),
        JobHeld(job_id=jobs[0], tenant=name, reason="no_capacity", short_gpus=2),
        JobPlaced(
            job_id=jobs[1],
            tenant=name,
            attempt=1,
            waited_ms=5,
            policy="fcfs",
            allocations=(Allocation(rank=0, node_id="n1", gpus=(1,)),),
        ),
        JobPreempted(
            job_id=jobs[1],
            tenant=name,
            attempt=1,
            reason="higher_class",
            by_job_id=f"{other}-waits",
        ),
    )
    await stack.project(
        "failslow",
        1,
        seq,
        FaultSuspected(
            fault_id=f"{name}-f",
            job_id=jobs[1],
            tenant=name,
            node_id="n1",
            allocation_id="a",
            slowdown=2,
            iteration_s=2,
            peers_s=1,
            score=9,
            reports=3,
        ),
    )
    await stack.project(
        "throttle",
        3,
        seq,
        LlmRequestQueued(
            request_id=f"{name}-r",
            tenant=name,
            endpoint="llama",
            application="app",
            prompt_tokens=1,
            max_output_tokens=1,
        ),
    )


async def reading_routes(stack: Stack) -> list[str]:
    _, document, _ = await stack.call("GET", "/openapi.json", key="")
    paths = document["paths"]
    return [path for path, methods in paths.items() if path.startswith("/v1/") and "get" in methods]


async def read_text(stack: Stack, path: str, key: str) -> tuple[int, str]:
    """Return status and text of a response; a stream is read for half a second."""
    async with stack.request("GET", path, key=key) as answer:
        if answer.content_type != "text/event-stream":
            return answer.status, await answer.text()
        read = b""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                while piece := await answer.content.readany():
                    read += piece
        return answer.status, read.decode()


async def test_no_response_names_another_tenants_data(filled: Stack) -> None:
    rng = random.Random(7)
    routes = await reading_routes(filled)
    assert len(routes) >= 18
    for own, other in (rng.sample(NAMES, 2) for _ in range(PAIRS)):
        for route in routes:
            path = at(route, own)
            own_status, text = await read_text(filled, path, own)
            assert own_status in (200, 403, 404), path
            assert not foreign(text, own), path
            if "{" in route:
                status, text = await read_text(filled, at(route, other), own)
                assert status == (403 if own_status == 403 else 404), route
                assert not foreign(text, own), route
        for query in QUERIES:
            status, text = await read_text(filled, query.format(name=other), own)
            # An error may repeat the value that the request itself named.
            shown = text.replace(f'"value":"{other}-', "")
            assert status in (200, 404, 422) and not foreign(shown, own), query


async def test_a_tenants_own_data_is_shown(filled: Stack) -> None:
    """Else the test above could not fail."""
    for path in (
        "/v1/jobs",
        "/v1/queue",
        "/v1/faults",
        "/v1/dead",
        "/v1/llm/requests",
        "/v1/allocations?released=true",
        "/v1/tenants",
    ):
        assert "qa-red" in (await read_text(filled, path, "qa-red"))[1], path
        more = f"{path}{'&' if '?' in path else '?'}limit=1000"
        everything = (await read_text(filled, more, "op"))[1]
        assert all(name in everything for name in NAMES), path


async def test_a_foreign_job_cannot_be_cancelled_or_submitted_for(filled: Stack) -> None:
    for verb, path in (("DELETE", "/v1/jobs/{}-waits"), ("POST", "/v1/jobs/{}-waits/cancel")):
        status, _, _ = await filled.call(verb, path.format("qb-green"), {}, key="qa-red")
        assert status == 404
    body = {"name": "t", "tenant": "qb-green"}
    assert (await filled.call("POST", "/v1/jobs", body, key="qa-red"))[0] == 403


async def test_a_query_without_its_where_shows_no_more_through_the_gateway(filled: Stack) -> None:
    """The same connection and the same queries, their conditions on the tenant cut out."""
    reads = database.Database(as_gateway(filled.dsn))
    bearer = Bearer("k", "viewer", "qa-red")
    for name, values in UNFILTERED.items():
        modules = (queries, job_queries, llm_queries)
        [sql] = [getattr(module, name) for module in modules if hasattr(module, name)]
        forgot = re.sub(r"\(\$1::text IS NULL OR (\w+\.)?tenant = \$1\)", "$1::text IS NULL", sql)
        assert forgot != sql
        rows = await reads.rows(bearer, forgot, None, *values, 1000)
        assert rows and {row["tenant"] for row in rows} == {"qa-red"}, name
    await reads.stop()


def at(route: str, name: str) -> str:
    for part, pattern in FOREIGN.items():
        route = route.replace(part, pattern.format(name=name))
    return route


def foreign(text: str, own: str) -> list[str]:
    return [name for name in NAMES if name != own and name in text]


@pytest.mark.parametrize(
    "bearer",
    [
        Bearer("k", "viewer", None),
        Bearer("k", "submitter", None),
        Bearer("k", "viewer", "a'; --"),
        Bearer("k", "viewer", "*"),
        Bearer("k", "viewer", ""),
    ],
)
def test_only_an_operator_sees_all_and_no_name_is_more_than_a_name(bearer: Bearer) -> None:
    with pytest.raises(ValueError, match="operators alone have none"):
        database.visible_tenant(bearer)
    assert database.visible_tenant(Bearer("k", "operator", None)) == "*"
    assert database.visible_tenant(Bearer("k", "operator", "ada")) == "ada"


async def test_a_key_that_is_narrower_than_its_tenant_says_so_and_is_held_to_it(
    stack: Stack,
) -> None:
    """A bad member of a tenant tries another class, pool and user, all by its own key."""
    narrow = KeyCreated(
        key_id="narrow",
        sha256=hash_secret("n1"),
        role="submitter",
        tenant="ada",
        user="robot",
        pools=("main",),
        highest_class="low",
        max_job_gpus=2,
    )
    await stack.append("access", 0, narrow)
    headers = {"Authorization": "Bearer narrow.n1"}
    status, shown, _ = await stack.call("GET", "/v1/whoami", key="", headers=headers)
    assert (status, shown["user"]) == (200, "robot")
    may = shown["may"]
    assert (may["pools"], may["highest_class"], may["max_job_gpus"]) == (["main"], "low", 2)
    assert (may["max_streams"], may["max_key_streams"]) == (32, 16)
    for more, field in (
        ({}, "priority_class"),
        ({"priority_class": "system"}, "priority_class"),
        ({"priority_class": "low", "pool": "side"}, "pool"),
        ({"priority_class": "low", "gang": {"workers": 3}}, "gang.workers"),
        ({"priority_class": "low", "user": "bob"}, "user"),
    ):
        body = {"name": "j", "command": ["true"], **more}
        status, problem, _ = await stack.call(
            "POST", "/v1/jobs", body=body, key="", headers=headers
        )
        assert (status, problem["reason"]) == (403, "not_permitted"), problem
        assert problem["errors"][0]["field"] == field
