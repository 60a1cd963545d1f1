"""The projector dies on each side of its commit; its rows are a fold of the ledgers even so."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import pytest
from asyncpg import Connection

from shared.bus.failpoints import Failpoints
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.projections import cursor, project
from shared.projections.database import connect
from shared.projections.facts import Batch
from shared.projections.migrate import migrate
from shared.projections.source import Source
from shared.verify.reading import Logs
from shared.verify.run import verify
from tests.chaos.story import tell
from tests.chaos.test_simulation import CALM

RECORDS = 40


class Died(BaseException):
    """In place of the end of the process."""


class Dying(Failpoints):
    def die(self) -> None:
        raise Died


@pytest.fixture(scope="module")
def broker() -> MemoryBroker:
    return tell(CALM).broker


async def project_all(
    conn: Connection, broker: MemoryBroker, step: Callable[[Connection, list[Batch]], object]
) -> bool:
    """From the stored cursors to the end; False when it died on the way."""
    source = Source(MemoryLog(broker), 1, await cursor.read(conn))
    await source.start()
    try:
        while batches := await source.poll(0.0, RECORDS):
            await step(conn, batches)  # type: ignore[misc]
    except Died:
        return False
    finally:
        await source.stop()
    return True


async def lives(
    conn: Connection, broker: MemoryBroker, step: Callable[[Connection, list[Batch]], object]
) -> int:
    """How often it had to start; each life dies at its second commit, until there is none."""
    count = 1
    while not await project_all(conn, broker, step):
        count += 1
    return count


async def violations(conn: Connection, broker: MemoryBroker) -> list[str]:
    report = await verify(Logs(MemoryLog(broker), 1, quiet_s=0.0, patience_s=1.0), conn)
    return [each.rule for each in report.violations]


@pytest.mark.parametrize("place", ["before_commit:2", "after_commit:2"])
async def test_a_projector_that_dies_at_its_commits_loses_and_repeats_nothing(
    place: str, broker: MemoryBroker, database: str
) -> None:
    await migrate(database)
    conn = await connect(database)

    async def step(conn: Connection, batches: list[Batch]) -> None:
        await project.project(conn, batches)

    starts = 1
    while True:
        with patch.object(project, "FAILPOINTS", Dying(place)):
            if await project_all(conn, broker, step):
                break
        starts += 1
    assert starts > 3
    assert await violations(conn, broker) == []
    await conn.close()


async def test_a_cursor_that_is_stored_before_its_rows_is_found_out(
    broker: MemoryBroker, database: str
) -> None:
    await migrate(database)
    conn, passed = await connect(database), 0

    async def cursor_first(conn: Connection, batches: list[Batch]) -> None:
        nonlocal passed
        for batch in batches:
            await cursor.advance(conn, batch)
        passed += 1
        if passed % 3 == 0:
            raise Died
        await project.write(conn, [line for batch in batches for line in batch.lines])

    assert await lives(conn, broker, cursor_first) > 2
    assert "read models equal the fold" in await violations(conn, broker)
    await conn.close()
