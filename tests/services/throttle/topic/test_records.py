from __future__ import annotations

import json

import pytest

from services.throttle.proxy.prompts import PromptTokenizer
from services.throttle.relay.errors import ErrorAnswer
from services.throttle.topic.records import RecordPosition, RequestRecords, with_counts
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.llm import ServeLlmRequest
from shared.ledger.cloudevents import encode
from tests.services.throttle.shell import REQUESTS, chat

PROMPTS = PromptTokenizer(None)


def append(broker: MemoryBroker, request_id: str, body: str) -> None:
    data = f'{{"request_id": "{request_id}", "body": {body}}}'.encode()
    broker.append(REQUESTS, encode(id="c", source="/t", type=ServeLlmRequest.TYPE, data=data))


async def test_bodies_are_read_in_any_order_as_they_were_sent() -> None:
    broker = MemoryBroker()
    records = RequestRecords(MemoryLog(broker))
    for n in range(4):
        append(broker, f"r{n}", f'{{"model": "m", "messages": [{{}}], "seed": {n}.50}}')
    for n in (2, 3, 0, 1, 1):
        body = await records.read(RecordPosition.parse(f"0/{n}"), f"r{n}")
        assert bytes(body.fields["seed"]) == f"{n}.50".encode()
    with pytest.raises(ErrorAnswer) as wrong:
        await records.read(RecordPosition(0, 1), "r2")
    assert wrong.value.code == "body_lost"
    with pytest.raises(ErrorAnswer) as gone:
        await records.read(RecordPosition(0, 9), "r9")
    assert gone.value.code == "body_lost"
    assert (await records.read(RecordPosition(0, 0), "r0")).model == "m"
    await records.close()


@pytest.mark.parametrize("body", [{}, {"model": "m"}, chat(0), {"model": 1, "messages": [1]}])
def test_a_body_that_is_invalid_changes_no_count(body: dict[str, object]) -> None:
    command = ServeLlmRequest(request_id="r", tenant="a", endpoint="m", body=body)
    data = json.dumps({"request_id": "r", "body": body}).encode()
    assert with_counts(command, data, PROMPTS) is command


def test_a_sender_that_knows_its_tokens_may_only_reserve_more() -> None:
    body = chat(20, text="x" * 400, user="ada", n=2)
    command = ServeLlmRequest(
        request_id="r", tenant="a", endpoint="m", body=body, prompt_tokens=1, max_output_tokens=1
    )
    data = json.dumps({"request_id": "r", "body": body}).encode()
    counted = with_counts(command, data, PROMPTS)
    assert counted.prompt_tokens >= 100
    assert counted.max_output_tokens == 40
    assert (counted.user, counted.model) == ("ada", body["model"])
    more = with_counts(command.model_copy(update={"prompt_tokens": 9000}), data, PROMPTS)
    assert more.prompt_tokens == 9000
