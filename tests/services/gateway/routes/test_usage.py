"""Usage over HTTP: by tenant, user, pool, day and month; each tenant sees its own alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.contracts.attempts import JobSucceeded
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from shared.projections.llm_usage import DAY_MS
from tests.services.gateway.stack import Stack
from tests.shared.projections.history import SPEC

HELD = Allocation(rank=0, node_id="n1", gpus=(0,), cpus=1, mem_gib=1)


@pytest.fixture(scope="module")
def used(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    await stack.clear_rows()
    main = PoolConfigured(pool="main", partition=0, gpu_hour_price=1.5)
    await stack.project("access", 0, 1, main)
    await stack.project("placement", 0, 1, main)
    for seq, (tenant, user) in enumerate((("ada", "ann"), ("ada", "abe"), ("bob", "")), 2):
        of = {"job_id": f"job{seq}", "tenant": tenant}
        spec = SPEC.model_copy(update={"user": user})
        await stack.project(
            "placement",
            0,
            seq,
            JobEnqueued(**of, submitted_at=1, spec=spec),
            JobPlaced(**of, attempt=1, allocations=(HELD,), waited_ms=1, policy="fcfs"),
            JobSucceeded(**of, attempt=1, gpu_s=7200),
        )


async def usage(stack: Stack, query: str, key: str = "ada") -> list[dict[str, Any]]:
    status, content, _ = await stack.call("GET", f"/v1/usage?{query}", key=key)
    assert status == 200, content
    items: list[dict[str, Any]] = content["items"]
    return items


async def test_use_is_summed_by_what_is_asked_for(used: Stack) -> None:
    [own] = await usage(used, "by=tenant")
    assert (own["tenant"], own["gpu_ms"], own["starts"], own["succeeded"]) == (
        "ada",
        14400000,
        2,
        2,
    )
    assert own["cost"] == 6.0
    users = {(row["tenant"], row["user"]) for row in await usage(used, "by=user", "op")}
    assert users == {("ada", "ann"), ("ada", "abe"), ("bob", "")}
    for by in ("pool", "day", "month"):
        [row] = await usage(used, f"by={by}", "op")
        assert row["starts"] == 3, by
    assert row["month"] == "1970-01"


async def test_a_page_names_the_next_one_until_all_groups_are_read(used: Stack) -> None:
    whole = await usage(used, "by=user", "op")
    pages, after = list[Any](), ""
    while after is not None:
        query = f"/v1/usage?by=user&limit=2{after and '&after=' + after}"
        page = (await used.call("GET", query, key="op"))[1]
        pages.append(page["items"])
        after = page["next"]
    assert [len(rows) for rows in pages] == [2, 1] and sum(pages, []) == whole
    exact = (await used.call("GET", "/v1/usage?by=user&limit=3", key="op"))[1]
    assert (len(exact["items"]), exact["next"]) == (3, None)


async def test_use_is_filtered(used: Stack) -> None:
    [row] = await usage(used, "user=ann&pool=main")
    assert row["starts"] == 1
    for nothing in ("user=none", "pool=none", f"since={DAY_MS}", "until=0"):
        assert await usage(used, nothing) == []
    assert [row["tenant"] for row in await usage(used, "tenant=bob", "op")] == ["bob"]


@pytest.mark.parametrize(
    ("query", "status"), [("tenant=bob", 404), ("by=key", 422), ("since=-1", 422), ("after=x", 422)]
)
async def test_other_tenants_and_unknown_values_are_refused(
    used: Stack, query: str, status: int
) -> None:
    assert (await used.call("GET", f"/v1/usage?{query}"))[0] == status
