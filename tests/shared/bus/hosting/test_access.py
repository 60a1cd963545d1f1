"""The view of `access` beside the lanes: an unknown key is refused only by a current view."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka.errors import KafkaConnectionError

from shared.bus.hosting.access import AccessFollower
from shared.bus.inputs.inbox import ACCESS
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import KeyCreated, KeyRevoked
from shared.contracts.keys import hash_secret
from shared.ledger.reader import Accepted
from tests.patience import PATIENCE_S, until

OLD = KeyCreated(key_id="old", sha256=hash_secret("s"), role="admin", tenant=None)
NEW = KeyCreated(key_id="new", sha256=hash_secret("s"), role="admin", tenant=None)


class Late:
    """Delays what the tail has read until `now` is set, and counts queries of the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = asyncio.Event()
        self.queries = 0
        poll, end = LedgerTail.poll, LedgerTail.end

        async def late(tail: LedgerTail) -> list[Accepted]:
            batch = await poll(tail)
            await self.now.wait()
            return batch

        async def counted(tail: LedgerTail, topic: str, partition: int) -> int:
            self.queries += 1
            return await end(tail, topic, partition)

        monkeypatch.setattr(LedgerTail, "poll", late)
        monkeypatch.setattr(LedgerTail, "end", counted)


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    return Late(monkeypatch)


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def writer(broker: MemoryBroker) -> LedgerWriter:
    made = LedgerWriter(broker, "access")
    made.write([OLD])
    return made


@pytest.fixture
async def access(
    broker: MemoryBroker, writer: LedgerWriter, late: Late
) -> AsyncIterator[AccessFollower]:
    made = AccessFollower(lambda: MemoryLog(broker))
    running = asyncio.create_task(made.run())
    late.now.set()
    await asyncio.wait_for(made.caught_up.wait(), PATIENCE_S)
    late.now.clear()
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_key_that_was_created_a_moment_ago_is_valid(
    access: AccessFollower, writer: LedgerWriter, late: Late
) -> None:
    writer.write([NEW])
    request = asyncio.ensure_future(access.authenticate("new.s"))
    await asyncio.wait({request}, timeout=0.1)
    assert not request.done()
    late.now.set()
    bearer = await asyncio.wait_for(request, PATIENCE_S)
    assert bearer is not None and bearer.key_id == "new"


async def test_a_known_key_is_checked_without_a_query_of_the_broker(
    access: AccessFollower, late: Late
) -> None:
    known = await access.authenticate("old.s")
    assert known is not None
    for wrong in ("old.other", "no key", ""):
        assert await access.authenticate(wrong) is None
    assert late.queries == 0


async def test_the_wait_for_an_unknown_key_has_a_limit(
    access: AccessFollower, writer: LedgerWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.hosting.access.CATCH_UP_S", 0.05)
    writer.write([NEW])
    assert await asyncio.wait_for(access.authenticate("new.s"), PATIENCE_S) is None


async def test_a_ledger_that_cannot_be_read_is_read_again(
    broker: MemoryBroker, writer: LedgerWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.hosting.access.RETRY_S", 0.01)
    poll, lost = LedgerTail.poll, [KafkaConnectionError(), OSError()]

    async def flaky(tail: LedgerTail) -> list[Accepted]:
        batch = await poll(tail, 0.05)
        if lost and batch:
            raise lost.pop()
        return batch

    monkeypatch.setattr(LedgerTail, "poll", flaky)
    access = AccessFollower(lambda: MemoryLog(broker))
    running = asyncio.create_task(access.run())
    await until(lambda: "old" in access.view.keys)
    writer.write([KeyRevoked(key_id="old")])
    await until(lambda: access.view.authenticate("old.s") is None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert not lost


async def test_the_records_that_were_not_read_yet_are_counted(
    access: AccessFollower, writer: LedgerWriter
) -> None:
    assert await access.behind() == {ACCESS: 0}
    writer.write([NEW])
    assert await access.behind() == {ACCESS: 1}
