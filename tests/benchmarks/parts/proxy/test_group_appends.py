"""Requests that wait together share one append, and each learns its outcome."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchmarks.parts.proxy.group_appends import GroupAppends
from shared.bus.logs.log import Headers
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP

LEDGER = TP("placement", 0)


class FailingLog(MemoryLog):
    async def append(
        self, tp: TP, value: bytes, *, key: bytes | None = None, headers: Headers = ()
    ) -> int:
        raise OutcomeUnknown("no answer")


def groups_of(broker: MemoryBroker) -> list[list[int]]:
    return [[row["n"] for row in json.loads(e.value or b"")] for e in broker.entries(LEDGER)]


async def test_what_waits_together_is_one_record_and_the_rest_another() -> None:
    broker = MemoryBroker()
    appends = GroupAppends(MemoryLog(broker), LEDGER, window_s=0.0)
    await asyncio.gather(*(appends.add({"n": n}) for n in range(3)))
    await appends.add({"n": 3})
    assert groups_of(broker) == [[0, 1, 2], [3]]


async def test_an_append_that_fails_fails_each_of_its_requests() -> None:
    appends = GroupAppends(FailingLog(MemoryBroker()), LEDGER, window_s=0.0)
    outcomes = await asyncio.gather(
        *(appends.add({"n": n}) for n in range(2)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknown] * 2
    with pytest.raises(OutcomeUnknown):
        await appends.add({"n": 2})
