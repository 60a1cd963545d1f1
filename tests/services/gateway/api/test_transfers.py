"""Jobs that left a pool are sent on once, are found by each of their ids, and can be cancelled."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from shared.contracts.admission import CancelRequested, JobAdmitted
from shared.contracts.attempts import JobCancelled
from shared.contracts.base import Event
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import JobStartEstimated
from shared.contracts.transfers import Transferred, TransferTarget, transferred_job_id
from shared.ledger.partition import TP
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import Stack
from tests.shared.ledger_events import node_joined

MAIN, SIDE = 1, 2
LATER_MS = 4_000_000_000_000
"""After every run of this test."""
SPEC = JobSpec(
    name="several",
    command=("run", "canary-argv"),
    env={"A": "canary-env"},
    gang=Gang(gpus_per_worker=1),
    pools=("main", "side"),
)


def there(job_id: str) -> str:
    return transferred_job_id("ada", "side", job_id)


def admitted(job_id: str, spec: JobSpec = SPEC) -> JobAdmitted:
    return JobAdmitted(job_id=job_id, tenant="ada", submitted_at=5, spec=spec)


def enqueued(job_id: str, spec: JobSpec = SPEC) -> JobEnqueued:
    return JobEnqueued(job_id=job_id, tenant="ada", submitted_at=5, spec=spec)


def left(job_id: str) -> JobCancelled:
    target = TransferTarget(pool="side", job_id=there(job_id), failures=1)
    return JobCancelled(job_id=job_id, tenant="ada", reason="transferred", transferred_to=target)


def arrived(job_id: str) -> JobSpec:
    before = Transferred(from_job_id=job_id, from_pool="main", first_job_id=job_id, transfers=1)
    return SPEC.model_copy(update={"transferred": before})


async def record(stack: Stack, event: Event) -> None:
    """Append the event to the ledger of admission, and project it from there."""
    await stack.append("admission", MAIN, event)
    seq, _ = stack.ledgers.chain[TP("admission", MAIN)]
    await stack.project("admission", MAIN, seq, event)


async def sent(stack: Stack, type_: str, job_id: str, lane: int) -> dict[str, Any]:
    """Return the first command of a type about a job, once it lies in the lane."""
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        for entry in await stack.read("commands", lane):
            envelope: dict[str, Any] = json.loads(entry.value or b"{}")
            if envelope.get("type") == type_ and envelope["data"]["job_id"] == job_id:
                return envelope
        await asyncio.sleep(0.2)
    raise AssertionError(f"no {type_} of {job_id} in lane {lane}")


@pytest.fixture(scope="module")
def pools(stack: Stack) -> Stack:
    asyncio.run(fill(stack))
    return stack


async def fill(stack: Stack) -> None:
    await stack.clear_rows()
    main = PoolConfigured(pool="main", partition=MAIN)
    side = PoolConfigured(pool="side", partition=SIDE)
    await stack.project("access", 0, 1, main, side)


async def test_a_job_that_left_is_submitted_to_the_next_pool_with_its_program(pools: Stack) -> None:
    await record(pools, admitted("t1"))
    await pools.project("placement", MAIN, 900, enqueued("t1"), left("t1"))
    status, row, _ = await pools.call("GET", "/v1/jobs/t1")
    assert (status, row["phase"], row["transferred_to"]["pool"]) == (200, "admitted", "side")
    command = await sent(pools, "job.submit.v1", there("t1"), SIDE)
    spec = JobSpec.model_validate(command["data"]["spec"])
    assert (spec.command, spec.env) == (SPEC.command, SPEC.env)
    assert spec.transferred is not None
    assert (spec.transferred.first_job_id, spec.transferred.failures) == ("t1", 1)


async def test_each_id_shows_the_job_where_it_is_with_its_whole_history(pools: Stack) -> None:
    await record(pools, admitted("t2"))
    await pools.project("placement", MAIN, 910, enqueued("t2"), left("t2"))
    spec = arrived("t2")
    await pools.project("admission", SIDE, 911, admitted(there("t2"), spec))
    await pools.project("placement", SIDE, 912, enqueued(there("t2"), spec))
    for job_id in ("t2", there("t2")):
        status, row, _ = await pools.call("GET", f"/v1/jobs/{job_id}")
        assert status == 200, row
        assert (row["job_id"], row["pool"], row["phase"]) == (there("t2"), "side", "waiting")
        _, why, _ = await pools.call("GET", f"/v1/jobs/{job_id}/why")
        types = [item["type"] for item in why["items"]]
        assert types.count("job.enqueued.v1") == 2
        assert types.count("job.cancelled.v1") == 1
        assert [item["until"] is None for item in why["items"]][-1:] == [True]
        assert all(item["until"] is not None for item in why["items"][:-1])
    status, _, _ = await pools.call("GET", "/v1/jobs/t2", key="bob")
    assert status == 404
    _, listed, _ = await pools.call("GET", "/v1/jobs")
    ids = [row["job_id"] for row in listed["items"]]
    assert there("t2") in ids
    assert "t2" not in ids
    status, receipt, _ = await pools.call("POST", "/v1/jobs/t2/cancel", {})
    assert status == 202
    command = await pools.command(receipt["command_id"])
    assert command is not None
    assert (command["lane"], command["data"]["job_id"]) == (SIDE, there("t2"))


async def test_a_cancel_that_came_as_the_job_left_follows_it(pools: Stack) -> None:
    await record(pools, admitted("t3"))
    request = CancelRequested(job_id="t3", tenant="ada", command_id="c3")
    await pools.project("admission", MAIN, 920, request)
    await pools.project("placement", MAIN, 921, enqueued("t3"), left("t3"))
    spec = arrived("t3")
    await pools.project("admission", SIDE, 922, admitted(there("t3"), spec))
    await pools.project("placement", SIDE, 923, enqueued(there("t3"), spec))
    await sent(pools, "job.cancel.v1", there("t3"), SIDE)


async def test_a_waiting_job_is_proposed_to_the_pool_with_room(pools: Stack) -> None:
    await fill(pools)
    await record(pools, admitted("t4"))
    await pools.project("placement", MAIN, 930, enqueued("t4"))
    await pools.project("placement", SIDE, 931, node_joined("n-side"))
    command = await sent(pools, "job.transfer.v1", "t4", MAIN)
    assert command["data"]["pool"] == "side"


async def test_why_names_the_other_pools_and_the_start_is_that_of_the_first(pools: Stack) -> None:
    await fill(pools)
    there = SPEC.model_copy(update={"pools": None})
    await record(pools, admitted("t5"))
    await pools.project("placement", MAIN, 940, enqueued("t5"))
    await pools.project("admission", SIDE, 941, admitted("s5", there))
    await pools.project("placement", SIDE, 942, enqueued("s5", there))
    estimated = JobStartEstimated(
        job_id="s5",
        tenant="ada",
        pool="side",
        p10_at=LATER_MS,
        p50_at=LATER_MS + 1,
        p90_at=LATER_MS + 2,
        coverage=None,
        samples=0,
    )
    await pools.project("priority", SIDE, 943, estimated)
    _, why, _ = await pools.call("GET", "/v1/jobs/t5/why")
    [side] = why["other_pools"]
    assert (side["pool"], side["rule"], side["waiting"]) == ("side", None, 1)
    assert why["start"] == side["start"]
    assert (why["start"]["pool"], why["start"]["p50_at"]) == ("side", LATER_MS + 1)
    _, row, _ = await pools.call("GET", "/v1/jobs/t5")
    assert row["start"] == side["start"]
    _, other, _ = await pools.call("GET", "/v1/jobs/s5/why")
    assert other["other_pools"] == []


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ({"pools": ["main", "none"]}, "pools"),
        ({"pools": ["main", "main"]}, "pools"),
        ({"pools": ["main", "side"], "array_size": 2}, "pools"),
        ({"transferred": {"from_job_id": "x"}}, "transferred"),
    ],
)
async def test_pools_that_cannot_be_are_refused(
    pools: Stack, named: dict[str, object], field: str
) -> None:
    body = {"name": "j", "command": ["true"], **named}
    status, problem, _ = await pools.call("POST", "/v1/jobs", body)
    assert status == 422
    assert problem["errors"][0]["field"].startswith(field)


async def test_the_first_of_several_pools_gets_the_job(pools: Stack) -> None:
    body = {"name": "j", "pools": ["side", "main"]}
    status, receipt, _ = await pools.call("POST", "/v1/jobs", body)
    assert (status, receipt["pool"]) == (202, "side")
    command = await pools.command(receipt["command_id"])
    assert command is not None
    assert command["data"]["spec"]["pools"] == ["side", "main"]
