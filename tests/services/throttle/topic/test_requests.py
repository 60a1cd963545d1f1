"""Requests of `llm.requests`, served by emulated engines and answered on the tenant's topic."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from services.throttle.topic import answers as limits
from services.throttle.topic import publisher
from shared.bus.clock import now_ms
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Headers
from shared.contracts.llm import (
    LlmAnswer,
    LlmRequestFinished,
    LlmRequestQueued,
    LlmRequestRejected,
    LlmRequestStarted,
)
from shared.ledger.errors import OutcomeUnknown
from tests.patience import until
from tests.services.throttle import shell
from tests.services.throttle.proxy.test_serve import (
    LONG,
    SLOW,
    always,
    engine,
    post,
    serving,
    settled,
)
from tests.services.throttle.shell import ANSWERS, LEDGER, MODEL, MemoryAnswers, ThrottleStack, chat

SECRET = "the-prompt-is-a-secret"


async def test_a_request_is_served_and_its_answer_is_that_of_the_proxy(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, client):
        await stack.send("r1", chat(text=SECRET))
        answer = await stack.answer()
        finished = await settled(stack)
        _, same, _ = await post(client, chat(text=SECRET))
    LlmAnswer.model_validate(answer)
    assert (answer["status"], answer["reason"]) == (200, "")
    for changing in ("id", "created"):
        same[changing] = answer["body"][changing]
    assert answer["body"] == same
    assert (finished.outcome, finished.output_tokens) == ("completed", 10)
    assert finished.prompt_tokens == answer["body"]["usage"]["prompt_tokens"]
    (entry,) = stack.broker.entries(ANSWERS)
    assert entry.key == b"r1"
    ledger = b"".join(entry.value or b"" for entry in stack.broker.entries(LEDGER))
    assert SECRET.encode() not in ledger


async def test_the_first_call_is_given_the_interaction_that_later_calls_continue(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as (stack, client):
        await stack.send("r1", chat())
        interaction = (await stack.answer())["interaction"]
        await stack.send("r2", chat(), interaction=interaction)
        again = await stack.answer(1)
        headers = {"x_berth_interaction": interaction}
        _, _, answered = await post(client, chat(), **headers)
    events = [event for event in stack.events() if isinstance(event, LlmRequestQueued)]
    assert [(event.is_issued, event.stage) for event in events] == [(True, 0), (True, 1), (True, 2)]
    assert again["interaction"] == answered["x-berth-interaction"] == interaction


async def test_an_answer_without_usage_is_charged_by_its_text_as_over_http(tmp_path: Path) -> None:
    async with serving(tmp_path, options={"faults": always("wrong-usage")}) as (stack, client):
        await post(client, chat(200))
        await stack.send("r1", chat(200))
        await stack.answer()
        await until(lambda: stack.types().count("llm.finished.v1") == 2)
    events = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
    assert events[0].output_tokens == events[1].output_tokens


async def test_the_service_counts_what_the_body_needs(tmp_path: Path) -> None:
    async with serving(tmp_path, output_limit=40) as (stack, _):
        await stack.send("r1", chat(30, text="x" * 4000), max_output_tokens=1, prompt_tokens=1)
        await stack.send("r2", chat(None), max_output_tokens=7)
        await stack.send("r3", chat(None))
        await until(lambda: len(stack.answers()) == 3)
    queued = [event for event in stack.events() if isinstance(event, LlmRequestQueued)]
    assert [event.max_output_tokens for event in queued] == [30, 7, 40]
    assert queued[0].prompt_tokens > 500
    assert [event.place for event in queued] == ["0/0", "0/1", "0/2"]
    made = {
        answer["request_id"]: answer["body"]["usage"]["completion_tokens"]
        for answer in stack.answers()
    }
    assert made == {"r1": 30, "r2": 7, "r3": 40}


@pytest.mark.parametrize(
    ("body", "fields", "status", "reason"),
    [
        (None, {}, 400, "no_body"),
        ({"model": MODEL}, {}, 400, "invalid_body"),
        (chat(0), {}, 400, "invalid_body"),
        (chat() | {"model": "none"}, {}, 404, "model_not_found"),
        (chat(), {"endpoint": "none"}, 404, "unknown_endpoint"),
    ],
)
async def test_a_request_that_cannot_be_served_is_answered(
    tmp_path: Path, body: Any, fields: dict[str, Any], status: int, reason: str
) -> None:
    async with serving(tmp_path) as (stack, _):
        await stack.send("r1", body, **fields)
        answer = await stack.answer()
        await until(lambda: not stack.lane.state.running)
    assert (answer["status"], answer["reason"]) == (status, reason)
    assert answer["body"]["error"]["code"] == reason
    finished = [event for event in stack.events() if isinstance(event, LlmRequestFinished)]
    assert all((event.prompt_tokens, event.output_tokens) == (0, 0) for event in finished)


@pytest.mark.parametrize("fault", ["reset", "cut", "malformed", "error"])
async def test_an_engine_that_fails_is_answered_with_its_error(tmp_path: Path, fault: str) -> None:
    async with serving(tmp_path, options={"faults": always(fault)}) as (stack, _):
        await stack.send("r1", chat(40))
        answer = await stack.answer()
        finished = await settled(stack)
    assert answer["status"] >= 500
    assert "error" in answer["body"]
    assert finished.outcome == "failed"
    assert finished.reason


async def test_a_request_that_waits_too_long_is_answered(tmp_path: Path) -> None:
    async with engine(speed=SLOW) as (_, url):
        stack = ThrottleStack(tmp_path, url, queue_timeout_s=0.2)
        upstream = stack.endpoint.upstreams[0].model_copy(update={"max_requests": 1})
        stack.access(stack.endpoint.model_copy(update={"upstreams": (upstream,)}))
        async with stack.running():
            await until(lambda: stack.lane.state.capacity == 1)
            await stack.send("r1", chat(LONG))
            await stack.send("r2", chat(LONG))
            answer = await stack.answer()
    assert (answer["request_id"], answer["reason"]) == ("r2", "queue_timeout")
    assert stack.only(LlmRequestRejected).reason == "queue_timeout"


def queued(request_id: str, place: str) -> LlmRequestQueued:
    return LlmRequestQueued(
        request_id=request_id,
        tenant="acme",
        endpoint=MODEL,
        prompt_tokens=30,
        max_output_tokens=10,
        place=place,
    )


async def test_a_restart_serves_what_waits_and_answers_what_was_lost(tmp_path: Path) -> None:
    async with engine() as (_, url):
        stack = ThrottleStack(tmp_path, url)
        for name in ("waits", "runs"):
            stack.request(name, chat())
        waiting, running = (queued(name, f"0/{n}") for n, name in enumerate(("waits", "runs")))
        started = LlmRequestStarted(request_id="runs", tenant="acme")
        pen = LedgerWriter(stack.broker, "throttle")
        pen.write([stack.endpoint, waiting, running, started], at=now_ms())
        async with stack.running():
            await until(lambda: len(stack.answers()) == 2)
            await until(lambda: not stack.lane.state.running)
    by_id = {answer["request_id"]: answer for answer in stack.answers()}
    assert (by_id["runs"]["status"], by_id["runs"]["reason"]) == (503, "lost")
    assert by_id["waits"]["status"] == 200
    finished = {e.request_id: e for e in stack.events() if isinstance(e, LlmRequestFinished)}
    assert finished["runs"].outcome == "lost"
    assert finished["waits"].outcome == "completed"


async def test_a_process_that_stops_answers_what_it_cuts_off(tmp_path: Path) -> None:
    async with engine(speed=1.0) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        async with stack.running():
            await stack.send("r1", chat(LONG))
            await until(lambda: "llm.charged.v1" in stack.types())
    (answer,) = stack.answers()
    assert (answer["status"], answer["reason"]) == (503, "process_stopped")
    finished = stack.only(LlmRequestFinished)
    assert (finished.outcome, finished.reason) == ("failed", "process_stopped")
    assert 1 <= finished.output_tokens < LONG


class SilentAnswers(MemoryAnswers):
    """A broker that acknowledges no answer."""

    async def send(
        self, topic: str, partition: int, value: bytes, *, key: bytes, headers: Headers
    ) -> int:
        raise OutcomeUnknown("no acknowledgement")


async def test_what_a_process_cannot_answer_is_answered_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine(speed=1.0) as (_, url):
        stack = ThrottleStack(tmp_path, url)
        with monkeypatch.context() as patch:
            patch.setattr(shell, "MemoryAnswers", SilentAnswers)
            async with stack.running():
                await stack.send("r1", chat(LONG))
                await until(lambda: "llm.charged.v1" in stack.types())
        assert stack.answers() == []
        async with stack.running():
            finished = await settled(stack)
    (answer,) = stack.answers()
    assert (answer["reason"], finished.outcome) == ("lost", "lost")


async def test_a_tenant_without_a_topic_uses_no_engine(tmp_path: Path) -> None:
    async with serving(tmp_path) as (stack, _):
        await stack.send("r1", chat(), tenant="other")
        finished = await settled(stack)
    assert (finished.outcome, finished.reason) == ("failed", "no_answer_topic")
    assert (finished.prompt_tokens, finished.output_tokens) == (0, 0)


@pytest.mark.parametrize("has_folder", [True, False])
async def test_a_large_answer_goes_by_reference_or_is_refused(
    tmp_path: Path, has_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "MOST_BYTES", 1000)
    assert limits.MOST_BYTES == 512 * 1024
    async with engine() as (_, url):
        service = {"answers": tmp_path / "answers"} if has_folder else {}
        stack = ThrottleStack(tmp_path, url, service=service)
        async with stack.running():
            await stack.send("r1", chat(1000))
            answer = await stack.answer()
            finished = await settled(stack)
    assert finished.output_tokens == 1000
    if not has_folder:
        assert (answer["status"], answer["reason"]) == (413, "answer_too_large")
        return
    assert "body" not in answer
    content = (tmp_path / "answers" / answer["reference"]["path"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == answer["reference"]["sha256"]
    assert json.loads(content)["usage"]["completion_tokens"] == 1000
