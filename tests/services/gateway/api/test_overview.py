"""Jobs and arrays in one list, and the jobs whose id begins with something."""

from __future__ import annotations

import asyncio

import pytest

from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobFailed, JobSucceeded
from shared.contracts.job_spec import JobSpec
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import PoolConfigured
from tests.services.gateway.stack import Stack

SPEC = JobSpec(name="train", command=("run", "canary-argv"))


@pytest.fixture(scope="module")
def rows(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    """An array `0aaa` of 12 jobs between two jobs, and a job of another tenant."""
    await stack.clear_rows()
    await stack.project("access", 0, 1, PoolConfigured(pool="main", partition=1))
    names = ["0aab", *(f"0aaa.{index}" for index in range(12)), "0bbb"]
    for seq, job in enumerate(names, 1):
        await admit(stack, seq, job, "ada")
    await admit(stack, 20, "0ccc", "bob")
    ends = (
        *(JobSucceeded(job_id=f"0aaa.{n}", tenant="ada", attempt=1) for n in range(3)),
        JobFailed(job_id="0aaa.10", tenant="ada", attempt=1, reason="worker_failed"),
    )
    await stack.project("placement", 1, 50, *ends)


async def admit(stack: Stack, seq: int, job: str, tenant: str) -> None:
    _, dot, index = job.partition(".")
    at = 100 if dot else seq
    admitted = JobAdmitted(
        job_id=job,
        tenant=tenant,
        submitted_at=at,
        spec=SPEC,
        # A job of its own that repeats the job 7 of an array.
        array_index=int(index) if dot else 7,
    )
    queued = JobEnqueued(job_id=job, tenant=tenant, submitted_at=at, spec=SPEC)
    await stack.project("admission", 1, seq, admitted)
    await stack.project("placement", 1, seq, queued)


async def test_an_array_is_one_row_with_counts(rows: Stack) -> None:
    _, content, _ = await rows.call("GET", "/v1/submissions")
    assert [row["job_id"] for row in content["items"]] == ["0aaa", "0bbb", "0aab"]
    array, job, _ = content["items"]
    counts = {"pending": 8, "running": 0, "succeeded": 3, "failed": 1, "cancelled": 0}
    assert array["array"] == {"jobs": 12, **counts} and array["name"] == "train"
    assert job["array"] is None and job["phase"] == "waiting"
    assert "canary" not in str(content)


async def test_pages_of_submissions_follow_each_other(rows: Stack) -> None:
    seen, after = [], ""
    for _ in range(3):
        _, content, _ = await rows.call("GET", f"/v1/submissions?limit=1{after}")
        seen += [row["job_id"] for row in content["items"]]
        after = f"&after={content['next']}"
    assert seen == ["0aaa", "0bbb", "0aab"]


@pytest.mark.parametrize(
    ("query", "jobs"),
    [("id=0aa", ["0aaa", "0aab"]), ("id=0bbb", ["0bbb"]), ("id=0ccc", []), ("name=x", [])],
)
async def test_ids_are_searched_by_their_beginning(
    rows: Stack, query: str, jobs: list[str]
) -> None:
    _, content, _ = await rows.call("GET", f"/v1/submissions?{query}")
    assert [row["job_id"] for row in content["items"]] == jobs
