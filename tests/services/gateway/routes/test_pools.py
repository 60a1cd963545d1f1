"""A pool is not deleted while the read models have an open job or a living node of it."""

from __future__ import annotations

from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobCancelled
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import PoolConfigured
from tests.services.gateway.stack import Stack
from tests.shared.ledger_events import node_joined
from tests.shared.projections.history import SPEC

LANE = 2
"""Of the pool `side`."""
OF = {"job_id": "j1", "tenant": "bob"}


async def refusal(stack: Stack, key: str = "root") -> tuple[int, str, str]:
    status, content, _ = await stack.call("DELETE", "/v1/pools/side", key=key)
    return status, content["reason"], content["detail"]


async def test_open_jobs_and_living_nodes_keep_their_pool(stack: Stack) -> None:
    await stack.clear_rows()
    facts = (
        PoolConfigured(pool="side", partition=LANE),
        TenantRegistered(tenant="bob", default_pool="main"),
    )
    await stack.project("access", 0, 1, *facts)
    admitted = JobAdmitted(**OF, submitted_at=1, spec=SPEC)
    await stack.project("admission", LANE, 1, admitted)
    in_use = "pool: 'side': has open jobs, such as j1; `berth cancel j1`"
    assert await refusal(stack) == (409, "pool_in_use", in_use), "before placement knows it"
    enqueued = JobEnqueued(**OF, submitted_at=1, spec=SPEC)
    await stack.project("placement", LANE, 1, enqueued, node_joined("n1"))
    assert await refusal(stack) == (409, "pool_in_use", in_use)
    await stack.project("placement", LANE, 2, JobCancelled(**OF, reason="over"))
    in_use = "pool: 'side': has open nodes, such as n1; `berth drain n1`"
    assert await refusal(stack) == (409, "pool_in_use", in_use)
    assert (await refusal(stack, "op"))[:2] == (403, "forbidden"), "an admin's right alone"


async def test_a_pool_that_does_not_exist_is_not_found(stack: Stack) -> None:
    status, _, _ = await stack.call("DELETE", "/v1/pools/none", key="root")
    assert status == 404


async def test_a_pool_stays_while_the_read_models_lack_records_of_its_jobs(stack: Stack) -> None:
    await stack.clear_rows()
    admitted = JobAdmitted(job_id="j-unread", tenant="bob", submitted_at=1, spec=SPEC)
    await stack.append("admission", LANE, admitted)
    status, content, _ = await stack.call("DELETE", "/v1/pools/side", key="root", once=True)
    detail = "read models lack records of admission; repeat"
    assert (status, content["reason"], content["detail"]) == (503, "reads_behind", detail)
