"""Items of many senders become one record, and each sender learns what became of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from pydantic import TypeAdapter, ValidationError

from services.executor.agents.relay import MOST_POSTED, Relay
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from tests.harness.flaky_log import FlakyLog
from tests.patience import PATIENCE_S

PLACE = TP("reports", 0)


def encode(items: Sequence[str]) -> bytes:
    return ",".join(items).encode()


def relay(log: FlakyLog, *, max_count: int = 9, max_bytes: int = 9) -> Relay[str]:
    return Relay(log, PLACE, encode, window_s=0.0, max_count=max_count, max_bytes=max_bytes)


async def put_all(made: Relay[str], *items: str) -> list[object]:
    running = asyncio.create_task(made.run())
    outcomes = await asyncio.gather(
        *(made.put(item, len(item)) for item in items), return_exceptions=True
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return list(outcomes)


def records(broker: MemoryBroker) -> list[bytes | None]:
    return [entry.value for entry in broker.entries(PLACE)]


async def test_items_of_one_window_are_one_record_in_their_order() -> None:
    broker = MemoryBroker()
    assert await put_all(relay(FlakyLog(MemoryLog(broker))), "a", "b", "c") == [None] * 3
    assert records(broker) == [b"a,b,c"]


@pytest.mark.parametrize("bounds", [{"max_count": 2}, {"max_bytes": 2}])
async def test_a_record_has_its_bounds(bounds: dict[str, int]) -> None:
    broker = MemoryBroker()
    await put_all(relay(FlakyLog(MemoryLog(broker)), **bounds), "a", "b", "c")
    assert records(broker) == [b"a,b", b"c"]


async def test_an_item_larger_than_the_bound_has_a_record_of_its_own() -> None:
    broker = MemoryBroker()
    await put_all(relay(FlakyLog(MemoryLog(broker)), max_bytes=3), "a", "large", "b")
    assert records(broker) == [b"a", b"large", b"b"]


async def test_every_sender_of_a_record_learns_its_unknown_outcome() -> None:
    broker = MemoryBroker()
    log = FlakyLog(MemoryLog(broker))
    log.accidents.extend(("lost_request", "none"))
    outcomes = await put_all(relay(log, max_count=2), "a", "b", "c")
    assert [isinstance(outcome, OutcomeUnknown) for outcome in outcomes] == [True, True, False]
    assert records(broker) == [b"c"]


async def test_an_abandoned_item_is_still_sent() -> None:
    broker = MemoryBroker()
    made = relay(FlakyLog(MemoryLog(broker)))
    abandoned = asyncio.create_task(made.put("a", 1))
    await asyncio.sleep(0)
    abandoned.cancel()
    assert await put_all(made, "b") == [None]
    assert records(broker) == [b"a,b"]


async def test_a_posted_item_is_lost_where_the_broker_is_away_and_disturbs_no_other() -> None:
    broker = MemoryBroker()
    log = FlakyLog(MemoryLog(broker))
    log.accidents.extend(("lost_request", "none"))
    made = relay(log, max_count=1)
    made.post("a")
    assert await put_all(made, "b") == [None]
    assert records(broker) == [b"b"]
    made.post("c")
    assert await put_all(relay(log), "d") == [None]
    assert records(broker) == [b"b", b"d"], "a relay that has stopped takes nothing"


async def test_posted_items_are_bounded() -> None:
    made = relay(FlakyLog(MemoryLog(broker := MemoryBroker())), max_count=10**6)
    for _ in range(2 * MOST_POSTED):
        made.post("a")
    await put_all(made, "b")
    [record] = records(broker)
    assert record is not None and record.count(b"a") == MOST_POSTED


async def test_what_waits_at_the_end_is_refused() -> None:
    broker = MemoryBroker()
    made = relay(FlakyLog(MemoryLog(broker)))
    running = asyncio.create_task(made.run())
    await asyncio.sleep(0)
    running.cancel()
    waiting = asyncio.create_task(made.put("a", 1))
    await asyncio.gather(running, return_exceptions=True)
    with pytest.raises(OutcomeUnknown, match="stopping"):
        await waiting


async def test_an_item_that_cannot_be_encoded_fails_alone() -> None:
    def encode_small(items: Sequence[str]) -> bytes:
        if "bad" in items:
            TypeAdapter(int).validate_python("bad")
        return encode(items)

    broker = MemoryBroker()
    log = FlakyLog(MemoryLog(broker))
    made = Relay(log, PLACE, encode_small, window_s=0.0, max_count=9, max_bytes=9)
    first, bad, last = await put_all(made, "a", "bad", "c")
    assert first is None and last is None and isinstance(bad, ValidationError)
    assert records(broker) == [b"a", b"c"]


async def test_messages_of_one_item_count_towards_the_bound() -> None:
    broker = MemoryBroker()
    made = relay(FlakyLog(MemoryLog(broker)), max_count=4)
    running = asyncio.create_task(made.run())
    await asyncio.gather(made.put("a", 1, count=3), made.put("b", 1, count=2))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert records(broker) == [b"a", b"b"]


async def test_the_first_item_after_a_pause_is_sent_at_once_and_later_ones_together() -> None:
    broker = MemoryBroker()
    made = Relay(
        FlakyLog(MemoryLog(broker)), PLACE, encode, window_s=PATIENCE_S, max_count=9, max_bytes=9
    )
    running = asyncio.create_task(made.run())
    await asyncio.wait_for(made.put("a", 1), PATIENCE_S / 2)
    later = [asyncio.create_task(made.put(item, 1)) for item in ("b", "c")]
    await asyncio.sleep(0.05)
    assert records(broker) == [b"a"], "the window is open"
    running.cancel()
    await asyncio.gather(running, *later, return_exceptions=True)
    short = Relay(
        FlakyLog(MemoryLog(broker)), PLACE, encode, window_s=0.05, max_count=9, max_bytes=9
    )
    running = asyncio.create_task(short.run())
    await short.put("d", 1)
    await asyncio.gather(short.put("e", 1), short.put("f", 1))
    assert records(broker) == [b"a", b"d", b"e,f"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
