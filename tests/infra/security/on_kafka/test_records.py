"""Each user tries each topic and each group of the guarded broker: the table decides all."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import pytest
from aiokafka.conn import AIOKafkaConnection, create_conn
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from infra.security import rights
from infra.security.rights import Operation
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import TOPICS, submissions, tenant_events
from shared.ledger.partition import TP
from tests.infra.security.allowed import allows
from tests.infra.security.on_kafka.guarded_broker import MARKS, TENANTS, Guarded

pytestmark = MARKS
PASSED, NO_TOPIC, NO_GROUP = 0, 29, 30
NO_COORDINATOR_YET, UNKNOWN_MEMBER = 16, 25
ALL_TOPICS = (
    *TOPICS,
    *(make(tenant).name for tenant in TENANTS for make in (submissions, tenant_events)),
)
GROUPS = (*map(rights.group_of, rights.services()), "ada/reader", "ada.b/reader", "elsewhere")
Cell = tuple[str, Operation, rights.Kind, str]
"""User, operation, kind and name of what is tried."""


async def test_every_cell_of_the_matrix_is_as_the_table_says(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = await _ends(guarded)
    rows = await asyncio.gather(*(_row(guarded, user) for user in guarded.passwords))
    cells = {cell: passed for row in rows for cell, passed in row.items()}
    wrong = {
        cell: passed for cell, passed in cells.items() if passed != allows(guarded.grants, *cell)
    }
    with capsys.disabled():
        sys.stdout.write(f"\n{_summary(cells)}\n")
    assert wrong == {}
    assert len(cells) == len(guarded.passwords) * (2 * len(ALL_TOPICS) + len(GROUPS))
    written = Counter(
        name for (_, op, _, name), passed in cells.items() if passed and op == "write"
    )
    assert await _ends(guarded) == {name: ends[name] + written[name] for name in ALL_TOPICS}


def _summary(cells: dict[Cell, bool]) -> str:
    passed = sum(cells.values())
    return (
        f"ACL matrix: {len(cells)} cells of {len({user for user, *_ in cells})} users tried, "
        f"{passed} let pass, {len(cells) - passed} refused"
    )


async def _row(guarded: Guarded, user: str) -> dict[Cell, bool]:
    settings = guarded.connection(user).aiokafka()
    settings.pop("bootstrap_servers")
    conn = await create_conn("127.0.0.1", guarded.port, **settings)
    try:
        row: dict[Cell, bool] = {}
        for topic in ALL_TOPICS:
            row[user, "write", "topic", topic] = await _may_write(conn, topic)
            row[user, "read", "topic", topic] = await _may_read(conn, topic)
        for group in GROUPS:
            row[user, "read", "group", group] = await _may_join(conn, group)
        return row
    finally:
        conn.close()


async def _may_write(conn: AIOKafkaConnection, topic: str) -> bool:
    batch = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1024)
    batch.append(0, None, None, b"x", [])
    request = ProduceRequest(None, -1, 5000, [(topic, [(0, bytes(batch.build()))])])
    answer = await conn.send(request)
    return _passed(answer.topics[0][1][0][1], NO_TOPIC, PASSED)


async def _may_read(conn: AIOKafkaConnection, topic: str) -> bool:
    answer = await conn.send(FetchRequest(0, 0, 10_000, 0, [(topic, [(0, 0, 10_000)])]))
    return _passed(answer.topics[0][1][0][1], NO_TOPIC, PASSED)


async def _may_join(conn: AIOKafkaConnection, group: str) -> bool:
    """A user with the right gets the answer that no such member is in the group."""
    answer = await conn.send(HeartbeatRequest(group, 1, "nobody"))
    return _passed(answer.error_code, NO_GROUP, UNKNOWN_MEMBER, NO_COORDINATOR_YET)


def _passed(code: int, refusal: int, *passing: int) -> bool:
    """Return False for the code of a refusal; any other code than those given is an error."""
    assert code in (refusal, *passing)
    return code != refusal


async def _ends(guarded: Guarded) -> dict[str, int]:
    log = KafkaLog(guarded.root)
    await log.start()
    try:
        return {topic: await log.end(TP(topic, 0)) for topic in ALL_TOPICS}
    finally:
        await log.stop()
