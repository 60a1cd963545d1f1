"""A pool is not deleted while the read models have an open job or a living node of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.gateway.reads.read_lag import LEDGERS
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import TenantRegistered
from shared.contracts.admission import JobAdmitted
from shared.contracts.attempts import JobCancelled
from shared.contracts.placement import JobEnqueued
from shared.contracts.pools import RELEASE, PoolConfigured
from shared.process.connection import Connection
from shared.projections.database import connect
from shared.projections.migrate import migrate
from shared.projections.roles import GATEWAY
from tests.broker_clients import log_of
from tests.patience import PATIENCE_S
from tests.services.gateway.stack import (
    Stack,
    as_gateway,
    fill_access,
    ready,
    start_access,
    start_broker,
    start_gateway,
)
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


@pytest.mark.process
async def test_a_pool_goes_once_the_read_models_have_all_records(
    database: str, tmp_path: Path
) -> None:
    await migrate(database, logins={GATEWAY: as_gateway(database)})
    broker, kafka = start_broker(tmp_path)
    ledgers = await fill_access(kafka)
    access, (gateway, url) = (
        start_access(tmp_path, kafka),
        start_gateway(tmp_path, kafka, as_gateway(database)),
    )
    site = Stack(kafka, url, database, tmp_path, ledgers, broker)
    try:
        await ready(url)
        spare = PoolConfigured(pool="spare", partition=LANE, release=RELEASE)
        others = (
            PoolConfigured(pool=name, partition=lane, release=RELEASE)
            for name, lane in (("main", 1), ("side", 0))
        )
        await site.append("access", 0, spare, *others)
        await site.append("admission", LANE, JobAdmitted(**OF, submitted_at=1, spec=SPEC))
        behind = "read models lack records of admission; repeat"
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await deleted(site))[0] == 404:
                await asyncio.sleep(0.1)
        assert answer == (503, "reads_behind", behind)
        await note_read(site)
        async with asyncio.timeout(PATIENCE_S):
            while (answer := await deleted(site))[0] == 503:
                await asyncio.sleep(0.1)
        assert answer[0] == 202
    finally:
        for running in (gateway, access, broker):
            running.stop()


async def deleted(site: Stack) -> tuple[int, str, str]:
    status, content, _ = await site.call("DELETE", "/v1/pools/spare", key="root", once=True)
    return status, content.get("reason", ""), content.get("detail", "")


async def note_read(site: Stack) -> None:
    """Store the positions of read models that have all records of the lane."""
    tail = LedgerTail(
        log_of(Connection(site.kafka, idempotent=False)), dict.fromkeys(LEDGERS, (LANE,))
    )
    await tail.start()
    while not tail.caught_up:
        await tail.poll()
    await tail.stop()
    conn = await connect(site.dsn)
    for ledger in LEDGERS:
        state = tail.cursor(ledger, LANE).to_json().decode()
        await conn.execute("INSERT INTO berth.cursor VALUES ($1, $2, $3)", ledger, LANE, state)
    await conn.close()
