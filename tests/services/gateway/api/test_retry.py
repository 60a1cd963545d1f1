"""A job that has ended is submitted again as it was; others are refused with a reason."""

from __future__ import annotations

import asyncio

import pytest

from shared.contracts.access import KeyCreated
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobFailed
from shared.contracts.base import Event
from shared.contracts.job_spec import JobSpec
from shared.contracts.keys import hash_secret
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from tests.services.gateway.stack import Stack

SPEC = JobSpec(name="train", command=("run", "canary-argv"), env={"A": "canary-env"})


@pytest.fixture(scope="module")
def jobs(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    """Jobs: `r1` failed, `r2` too but is not recorded, `r3.4` is of an array, `r5` waits.

    `r6` failed, and is a robot's.
    """
    await stack.clear_rows()
    await stack.project("access", 0, 1, PoolConfigured(pool="main", partition=1))
    await record(stack, admitted("r1"))
    await stack.project("admission", 3, 900, admitted("r2"))
    await record(stack, admitted("r3.4", index=4))
    await stack.project("admission", 1, 901, admitted("r5"))
    await record(stack, admitted("r6", user="robot"))
    for seq, job in enumerate(("r1", "r2", "r3.4", "r5", "r6"), 900):
        queued = JobEnqueued(job_id=job, tenant="ada", submitted_at=1, spec=SPEC)
        failed = JobFailed(job_id=job, tenant="ada", attempt=1, reason="worker_failed")
        await stack.project("placement", 1, seq, queued, *([failed] if job != "r5" else []))


def admitted(job: str, index: int | None = None, user: str = "unknown") -> JobAdmitted:
    spec = SPEC.model_copy(update={"user": user})
    return JobAdmitted(job_id=job, tenant="ada", submitted_at=1, spec=spec, array_index=index)


async def record(stack: Stack, event: Event) -> None:
    """Append the event to the ledger of admission, and project it from there."""
    await stack.append("admission", 1, event)
    seq, _ = stack.ledgers.chain[TP("admission", 1)]
    await stack.project("admission", 1, seq, event)


async def test_a_failed_job_is_submitted_again_with_its_program(jobs: Stack) -> None:
    headers = {"Idempotency-Key": "again"}
    status, one, _ = await jobs.call("POST", "/v1/jobs/r1/retry", headers=headers)
    assert status == 202, one
    assert one["job_ids"] == [one["job_id"]] and one["job_id"] != "r1"
    command = await jobs.command(one["command_id"])
    assert command is not None and (command["type"], command["lane"]) == ("job.submit.v1", 1)
    assert JobSpec.model_validate(command["data"]["spec"]) == SPEC
    assert "canary" not in str(one)
    _, two, _ = await jobs.call("POST", "/v1/jobs/r1/retry", headers=headers)
    assert two["job_id"] == one["job_id"], "the same key"
    _, other, _ = await jobs.call("POST", "/v1/jobs/r1/retry", key="op")
    assert other["job_id"] != one["job_id"]


async def test_the_bounds_and_the_user_of_a_key_hold_for_a_repetition(jobs: Stack) -> None:
    for key_id, more in (("low-only", {"highest_class": "low"}), ("robots", {"user": "robot"})):
        key = KeyCreated.model_validate(
            {
                "key_id": key_id,
                "sha256": hash_secret("s1"),
                "role": "submitter",
                "tenant": "ada",
                **more,
            }
        )
        await jobs.append("access", 0, key)
    low, robot = ({"Authorization": f"Bearer {key_id}.s1"} for key_id in ("low-only", "robots"))
    status, content, _ = await jobs.call("POST", "/v1/jobs/r1/retry", key="", headers=low)
    assert (status, content["reason"]) == (403, "not_permitted")
    assert content["errors"][0]["field"] == "priority_class"
    status, content, _ = await jobs.call("POST", "/v1/jobs/r1/retry", key="", headers=robot)
    assert (status, content["reason"]) == (403, "not_permitted")
    assert content["errors"][0]["rule"].startswith("must be 'robot', the user of key:robots")
    status, one, _ = await jobs.call("POST", "/v1/jobs/r6/retry", key="", headers=robot)
    assert status == 202, one
    command = await jobs.command(one["command_id"])
    assert command is not None and command["data"]["spec"]["user"] == "robot"


@pytest.mark.parametrize(
    ("job", "key", "status", "reason"),
    [
        ("none", "ada", 404, "not_found"),
        ("r1", "bob", 404, "not_found"),
        ("r5", "ada", 409, "job_not_ended"),
        ("r2", "ada", 410, "spec_gone"),
        ("r3.4", "ada", 410, "spec_gone"),
    ],
)
async def test_another_job_is_refused_with_the_reason(
    jobs: Stack, job: str, key: str, status: int, reason: str
) -> None:
    answer, content, _ = await jobs.call("POST", f"/v1/jobs/{job}/retry", key=key)
    assert (answer, content["reason"]) == (status, reason)
    assert "canary" not in str(content)
