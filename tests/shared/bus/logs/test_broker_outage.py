"""A request waits for a broker that is away, within a limit; a refusal is not repeated."""

from __future__ import annotations

import pytest
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from shared.bus.logs import broker_outage
from shared.bus.logs.broker_outage import retry_while_away


async def test_a_broker_that_is_away_is_waited_for_with_one_line_and_a_refusal_is_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_outage, "FIRST_PAUSE_S", 0.001)
    answers = [KafkaConnectionError(), OSError(), KafkaConnectionError()]

    async def request() -> str:
        if answers:
            raise answers.pop()
        return "here"

    assert await retry_while_away(request, max_s=60.0) == "here"
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the broker does not answer",
        "the broker answers again",
    ]

    async def refused() -> None:
        raise TopicAuthorizationFailedError

    with pytest.raises(TopicAuthorizationFailedError):
        await retry_while_away(refused, max_s=60.0)


async def test_the_wait_for_a_broker_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_outage, "FIRST_PAUSE_S", 0.001)

    async def away() -> None:
        raise KafkaConnectionError

    with pytest.raises(KafkaConnectionError):
        await retry_while_away(away, max_s=0.02)
