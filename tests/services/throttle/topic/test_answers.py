from __future__ import annotations

import json

import pytest

from services.throttle.topic.answers import Sender, answer_record, engine_answer, refusal
from shared.contracts.llm import LlmAnswer
from shared.ledger.cloudevents import decode

TO = Sender("r1", "acme", "chat", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")


def test_the_body_of_an_engine_stays_as_it_is() -> None:
    body = b'{"n": 1.50, "big": 12345678901234567890123}'
    record = answer_record(engine_answer(TO, 200, body), 1_700_000_000_000)
    assert body in record
    event = decode(record)
    assert (event.type, event.subject, event.tenant) == (LlmAnswer.TYPE, "r1", "acme")
    assert event.traceparent == TO.traceparent
    LlmAnswer.model_validate_json(event.body)


def test_all_answers_to_a_request_have_one_id() -> None:
    answers = (engine_answer(TO, 200, b"{}"), refusal(TO, "lost", "process: ended"))
    assert {decode(answer_record(answer, 1)).id for answer in answers} == {"llm.answer/acme/r1"}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"a": }', b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_json_object_is_an_error_that_does_not_quote_it(body: bytes) -> None:
    answer = engine_answer(TO, 500, body)
    assert (answer.status, answer.reason) == (502, "upstream_failed")
    message = json.loads(answer.body)["error"]["message"]
    assert message == "engine: status 500 without a JSON object"


def test_an_error_of_an_engine_is_passed_on_with_its_status() -> None:
    answer = engine_answer(TO, 422, b'{"error": {"message": "no"}}')
    assert (answer.status, answer.reason) == (422, "status_422")
