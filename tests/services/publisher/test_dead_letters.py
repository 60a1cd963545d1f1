"""A dead letter has the bytes of the rejected input, or says why it has none."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping

import msgspec
import pytest

from services.publisher.core.lane import Published
from services.publisher.dead_letters import AHEAD, MAX_BYTES, MAX_FEEDS, DeadLetters
from shared.bus.logs.log import Entry, Feed
from shared.bus.logs.memory import MemoryBroker, MemoryFeed, MemoryLog
from shared.ledger.partition import TP


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
async def letters(broker: MemoryBroker) -> AsyncIterator[DeadLetters]:
    letters = DeadLetters(MemoryLog(broker))
    yield letters
    await letters.close()


def rejected(value: bytes, offset: int, topic: str = "commands", tenant: str = "ada") -> Published:
    body = {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "reason": "not JSON",
        "sha256": hashlib.sha256(value).hexdigest(),
        "tenant": tenant,
    }
    event_id = f"admission/0/{offset}/0"
    return Published(event_id, b"", b"", "", tenant, 0, b"", msgspec.json.encode(body))


async def test_the_bytes_come_with_their_origin(broker: MemoryBroker, letters: DeadLetters) -> None:
    offset = broker.append(TP("commands", 0), b"rubbish")
    letter = await letters.letter(rejected(b"rubbish", offset, tenant=""))
    assert (letter.key, letter.value) == (b"admission/0/0/0", b"rubbish")
    headers = dict(letter.headers)
    assert headers["berth-topic"] == b"commands" and headers["berth-reason"] == b"not JSON"
    assert "berth-missing" not in headers and "berth-tenant" not in headers


@pytest.mark.parametrize(
    ("value", "meant", "offset", "missing"),
    [
        (b"rubbish", b"others", 0, b"other_bytes"),
        (b"x" * (MAX_BYTES + 1), b"x" * (MAX_BYTES + 1), 0, b"too_large"),
        (b"rubbish", b"rubbish", 5, b"gone"),
    ],
)
async def test_absent_bytes_are_explained(
    broker: MemoryBroker,
    letters: DeadLetters,
    value: bytes,
    meant: bytes,
    offset: int,
    missing: bytes,
) -> None:
    broker.append(TP("commands", 0), value)
    letter = await letters.letter(rejected(meant, offset))
    assert (letter.value, dict(letter.headers)["berth-missing"]) == (b"", missing)


class SilentFeed(MemoryFeed):
    """A feed of a broker that is too busy to answer for a while."""

    async def poll(self, wait_s: float, max_records: int = 500) -> dict[TP, list[Entry]]:
        return {}


class BusyLog(MemoryLog):
    silent = True

    async def feed(self, start: Mapping[TP, int], *, lossy: bool = False) -> Feed:
        return (SilentFeed if self.silent else MemoryFeed)(self.broker, start, lossy)


async def test_a_broker_that_does_not_answer_has_lost_nothing(broker: MemoryBroker) -> None:
    """A dead letter is written once: without its bytes they would be gone for good."""
    log = BusyLog(broker)
    letters = DeadLetters(log)
    event = rejected(b"rubbish", broker.append(TP("commands", 0), b"rubbish"))
    with pytest.raises(TimeoutError, match="commands-0: the record at 0 did not come in 5 s"):
        await letters.letter(event)
    gone = await letters.letter(rejected(b"rubbish", 1))
    assert dict(gone.headers)["berth-missing"] == b"gone"
    await letters.close()
    log.silent = False
    assert (await letters.letter(event)).value == b"rubbish"
    await letters.close()


async def test_bursts_over_many_topics_and_offsets_are_served(
    broker: MemoryBroker, letters: DeadLetters
) -> None:
    """More topics than readers, and more records than are read ahead."""
    topics = [f"submissions.t{number}" for number in range(MAX_FEEDS + 2)]
    for number in range(AHEAD + 2):
        broker.append(TP(topics[0], 0), b"%d" % number)
    for topic in topics[1:]:
        broker.append(TP(topic, 0), topic.encode())
    for offset in (0, 1, AHEAD + 1, 2):
        letter = await letters.letter(rejected(b"%d" % offset, offset, topics[0]))
        assert letter.value == b"%d" % offset
    for topic in [*topics[1:], topics[0]]:
        value = b"0" if topic == topics[0] else topic.encode()
        assert (await letters.letter(rejected(value, 0, topic))).value == value
