"""Shares over HTTP: operators see all tenants of a pool, a tenant its own row."""

from __future__ import annotations

import pytest

from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted, QuotaChanged
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.pools import PoolConfigured
from tests.services.gateway.stack import Stack
from tests.shared.ledger_events import node_joined
from tests.shared.projections.history import SPEC

HELD = Allocation(rank=0, node_id="n1", gpus=(0,), cpus=1, mem_gib=1)


async def test_a_tenant_sees_its_own_share_and_operators_all(stack: Stack) -> None:
    await stack.clear_rows()
    lane = 1
    await stack.project(
        "access",
        0,
        1,
        PoolConfigured(pool="main", partition=lane),
        TenantRegistered(tenant="ada", default_pool="main"),
        TenantRegistered(tenant="bob", default_pool="side"),
    )
    quota = QuotaChanged(tenant="ada", guaranteed_gpus=4)
    await stack.project("admission", lane, 1, quota, *(admitted(job) for job in ("j1", "j2")))
    of = {"job_id": "j1", "tenant": "ada"}
    await stack.project(
        "placement",
        lane,
        1,
        node_joined("n1", gpu_type="h100", gpus=8, cpus=64, mem_gib=512),
        *(JobEnqueued(job_id=job, tenant="ada", submitted_at=1, spec=SPEC) for job in ("j1", "j2")),
        JobPlaced(**of, attempt=1, allocations=(HELD,), waited_ms=1, policy="fcfs"),
    )
    status, content, _ = await stack.call("GET", "/v1/shares?pool=main", key="op")
    assert status == 200, content
    ada, bob = content["items"]
    gpus = SPEC.gang.gpus
    # Other tests have registered tenants, which have a share of the pool as well.
    assert 0 < ada["share"] == bob["share"] <= 0.5
    assert (ada["tenant"], ada["entitled_gpus"]) == ("ada", 8 * ada["share"])
    assert (ada["used_gpus"], ada["waiting_gpus"], ada["guaranteed_gpus"]) == (gpus, gpus, 4.0)
    assert (ada["use_share"], ada["factor"]) == (1.0, pytest.approx(2 ** (-1 / ada["share"])))
    assert (bob["tenant"], bob["used_gpus"], bob["factor"]) == ("bob", 0.0, 1.0)
    status, content, _ = await stack.call("GET", "/v1/shares", key="ada")
    [own] = content["items"]
    assert own == {**ada, "use_share": None, "factor": None} | {
        "decayed_gpu_hours": pytest.approx(ada["decayed_gpu_hours"], rel=1e-3)
    }


def admitted(job_id: str) -> JobAdmitted:
    return JobAdmitted(job_id=job_id, tenant="ada", submitted_at=1, spec=SPEC)
