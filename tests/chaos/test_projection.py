"""The projector dies on each side of its commit; its rows stay a fold of the ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from asyncpg import Connection

from infra.drills.proxy import Mode, Proxy
from services.projector import app
from services.projector.app import Projector
from services.projector.settings import ProjectorSettings
from shared.bus.failpoints import Failpoints
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import TOPICS
from shared.ledger.partition import TP
from shared.projections import cursor, project
from shared.projections.database import connect
from shared.projections.ledger_events import LedgerBatch
from shared.projections.source import Source
from shared.telemetry.metrics import Metrics
from shared.verify.reading import InstallationLog
from shared.verify.run import verify
from tests.chaos.story import tell
from tests.chaos.test_simulation import CALM
from tests.patience import PATIENCE_S

RECORDS = 40


class Died(BaseException):
    """Stands for the end of the process."""


class Dying(Failpoints):
    def die(self) -> None:
        raise Died


@pytest.fixture(scope="module")
def broker() -> MemoryBroker:
    return tell(CALM).broker


async def project_all(
    conn: Connection, broker: MemoryBroker, step: Callable[[Connection, list[LedgerBatch]], object]
) -> bool:
    """Project from the stored cursors to the end; return False if it died on the way."""
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


async def starts_until_end(
    conn: Connection, broker: MemoryBroker, step: Callable[[Connection, list[LedgerBatch]], object]
) -> int:
    """Return how many starts it takes to reach the end."""
    count = 1
    while not await project_all(conn, broker, step):
        count += 1
    return count


async def violations(conn: Connection, broker: MemoryBroker, catch_up_s: float = 1.0) -> list[str]:
    report = await verify(
        InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=catch_up_s), conn
    )
    return [violation.rule for violation in report.violations]


@pytest.mark.parametrize("place", ["before_commit:2", "after_commit:2"])
async def test_a_projector_that_dies_at_its_commits_loses_and_repeats_nothing(
    place: str, broker: MemoryBroker, database: str
) -> None:
    conn = await connect(database)

    async def step(conn: Connection, batches: list[LedgerBatch]) -> None:
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


@pytest.mark.parametrize("mode", ["slow", "cut", "half_open"])
async def test_a_projector_goes_on_behind_a_bad_network_to_postgres(
    mode: Mode, broker: MemoryBroker, database: str, tmp_path: Path
) -> None:
    """Half open is the hard case: no answer comes, and no error either."""
    copied = of_this_loop(broker)
    proxy = Proxy(socket_of(database))
    await proxy.start(tmp_path / ".s.PGSQL.5432")
    settings = ProjectorSettings(
        kafka="memory:1",
        data=tmp_path,
        partitions=1,
        gather_ms=0,
        batch_records=3,
        postgres=through(database, tmp_path),
    )
    with (
        patch.object(app, "KafkaLog", lambda *_, **__: MemoryLog(copied)),
        patch.multiple(app, ANSWER_S=0.5, RETRY_S=0.1),
    ):
        running = asyncio.ensure_future(Projector(settings, Metrics("projector")).run())
        for _ in range(3):
            await asyncio.sleep(0.1)
            proxy.mode = mode
            await asyncio.sleep(0.7)
            proxy.mode = "good"
        conn = await connect(database)
        async with asyncio.timeout(PATIENCE_S):
            while not await all_is_there(conn, copied):
                await asyncio.sleep(0.1)
        assert await violations(conn, copied) == []
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})
    await conn.close()
    await proxy.stop()


def of_this_loop(broker: MemoryBroker) -> MemoryBroker:
    """Return a copy of the broker; waiting on a broker binds it to the running loop."""
    copy = MemoryBroker()
    for topic in TOPICS:
        for entry in broker.entries(TP(topic, 0)):
            assert entry.value is not None
            copy.append(TP(topic, 0), entry.value, entry.key, entry.headers)
    return copy


async def all_is_there(conn: Connection, broker: MemoryBroker) -> bool:
    """Return whether the rows contain the last record of every ledger."""
    source = Source(MemoryLog(broker), 1, await cursor.read(conn))
    await source.start()
    try:
        return not await source.poll(0.0, RECORDS)
    finally:
        await source.stop()


def socket_of(dsn: str) -> Path:
    return Path(parse_qs(urlsplit(dsn).query)["host"][0]) / ".s.PGSQL.5432"


def through(dsn: str, folder: Path) -> str:
    """Return the DSN of the same database by the socket in this folder."""
    parts = urlsplit(dsn)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return parts._replace(query=urlencode(query | {"host": str(folder)})).geturl()


async def test_a_cursor_that_is_stored_before_its_rows_is_detected(
    broker: MemoryBroker, database: str
) -> None:
    conn, passed = await connect(database), 0

    async def cursor_first(conn: Connection, batches: list[LedgerBatch]) -> None:
        nonlocal passed
        for batch in batches:
            await cursor.advance(conn, batch)
        passed += 1
        if passed % 3 == 0:
            raise Died
        await project.write_rows(conn, [event for batch in batches for event in batch.events])

    assert await starts_until_end(conn, broker, cursor_first) > 2
    assert "read models equal the fold" in await violations(conn, broker)
    await conn.close()
