from __future__ import annotations

from pathlib import Path

import pytest

from services.throttle.topic import publisher
from services.throttle.topic.answers import MOST_BYTES, Answer, Sender
from services.throttle.topic.files import AnswerFiles
from services.throttle.topic.publisher import AnswerPublisher
from shared.bus.logs.log import Headers
from shared.bus.logs.memory import MemoryBroker
from shared.contracts.topics import tenant_answers
from shared.ledger.errors import OutcomeUnknown
from shared.ledger.partition import TP
from tests.services.throttle.shell import MemoryAnswers

TOPIC = TP(tenant_answers("acme").name, 0)


class UnsureAnswers(MemoryAnswers):
    """A broker whose first acknowledgements are lost, and which may have no record."""

    def __init__(self, broker: MemoryBroker, losses: int) -> None:
        super().__init__(broker)
        self.losses = losses

    async def send(
        self, topic: str, partition: int, value: bytes, *, key: bytes, headers: Headers
    ) -> int:
        offset = await super().send(topic, partition, value, key=key, headers=headers)
        self.losses -= 1
        if self.losses >= 0:
            raise OutcomeUnknown("no acknowledgement")
        return offset


def answer(tenant: str = "acme", body: bytes = b"{}") -> Answer:
    return Answer(Sender("r1", tenant), 200, body)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "PAUSE_S", 0.0)


@pytest.mark.parametrize(("losses", "published"), [(0, True), (2, True), (3, False)])
async def test_an_answer_is_repeated_until_it_is_acknowledged(losses: int, published: bool) -> None:
    broker = MemoryBroker()
    answers = AnswerPublisher(lambda: UnsureAnswers(broker, losses), 5, None)
    assert await answers.publish(answer()) is published
    assert len(broker.entries(TOPIC)) == min(losses + 1, 3)


async def test_a_tenant_without_a_topic_gets_no_record() -> None:
    broker = MemoryBroker()
    answers = AnswerPublisher(lambda: MemoryAnswers(broker), 0, None)
    assert await answers.has_topic("acme")
    assert not await answers.publish(answer("other"))
    assert not broker.entries(TP(tenant_answers("other").name, 0))


async def test_an_answer_that_cannot_be_stored_is_an_error(tmp_path: Path) -> None:
    broker = MemoryBroker()
    (tmp_path / "file").write_bytes(b"")
    answers = AnswerPublisher(lambda: MemoryAnswers(broker), 0, AnswerFiles(tmp_path / "file"))
    assert await answers.publish(answer(body=b'"' + b"x" * MOST_BYTES + b'"'))
    (entry,) = broker.entries(TOPIC)
    assert b"answer_not_stored" in (entry.value or b"")
