"""The proxy over real sockets, as a client of the OpenAI API."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.throttle.engine import answer_tokens
from services.throttle.openai import FINGERPRINT, filler
from shared.bus.tail import LedgerTail
from shared.contracts.access import KeyRevoked, TenantRegistered
from shared.contracts.codec import encode
from shared.ledger import cloudevents
from shared.ledger.reader import Accepted
from tests.patience import PATIENCE_S, until
from tests.services.throttle.llm import serve_command
from tests.services.throttle.shell import REQUESTS, Stack, chat, key

LONG = "a1"
"""A request id that draws a long answer: 388 of 400 tokens, 49 of 60."""
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


async def post(
    client: aiohttp.ClientSession, body: Any, path: str = CHAT, **headers: str
) -> tuple[int, dict[str, Any], Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client.post(path, json=body, headers=named) as response:
        return response.status, await response.json(), response.headers


async def test_a_chat_completion_is_answered_with_emulated_text(stack: Stack) -> None:
    async with stack.running() as client:
        status, body, headers = await post(client, chat(text="x" * 40))
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["model"] == "chat"
    assert body["system_fingerprint"] == FINGERPRINT
    (choice,) = body["choices"]
    usage = body["usage"]
    assert choice["message"] == {
        "role": "assistant",
        "content": filler(0, usage["completion_tokens"]),
    }
    assert choice["message"]["content"].startswith("[emulated]")
    assert usage["prompt_tokens"] == 10
    assert 1 <= usage["completion_tokens"] <= 10
    assert headers["x-ratelimit-limit-requests"] == "200"
    assert headers["x-ratelimit-remaining-requests"] == "200"
    assert headers["x-ratelimit-reset-requests"] == "0.000s"
    assert int(headers["x-berth-queue-wait-ms"]) >= 0
    assert "llm.finished.v1" in stack.types()
    assert "command.accepted.v1" not in stack.types()


async def test_a_request_of_a_new_tenant_waits_until_proxy_and_lane_have_read_its_registration(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = asyncio.Event()
    released.set()
    poll = LedgerTail.poll

    async def late(tail: LedgerTail) -> list[Accepted]:
        records = await poll(tail)
        await released.wait()
        return records

    monkeypatch.setattr(LedgerTail, "poll", late)
    async with stack.running() as client:
        released.clear()
        stack.access(TenantRegistered(tenant="new", default_pool="main"), key("new-1", "new"))
        request = asyncio.ensure_future(post(client, chat(), authorization="Bearer new-1.sesame"))
        await asyncio.wait({request}, timeout=0.1)
        released.set()
        await asyncio.wait({request}, timeout=0.1)
        assert not request.done()
        await stack.feed()
        assert (await request)[0] == 200


async def test_an_unknown_key_or_model_is_refused_after_catching_up(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.access.CATCH_UP_S", 0.05)
    async with stack.running() as client:
        assert (await post(client, chat(), authorization="Bearer ghost.sesame"))[0] == 401
        assert (await post(client, {**chat(), "model": "none"}))[0] == 404
        monkeypatch.setattr(LedgerTail, "end", _far)
        assert (await post(client, chat(), authorization="Bearer ghost.sesame"))[0] == 401


async def _far(_tail: LedgerTail, _topic: str, _partition: int) -> int:
    return 1_000


async def test_a_text_completion_is_answered(stack: Stack) -> None:
    async with stack.running() as client:
        body = {"model": "chat", "prompt": "hello", "max_tokens": 3}
        status, answer, _ = await post(client, body, TEXT)
    assert status == 200
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"].startswith("[emulated]")


@pytest.mark.parametrize("path", [CHAT, TEXT])
async def test_a_stream_carries_the_same_answer_in_pieces(stack: Stack, path: str) -> None:
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    body = (
        chat(60, **options) if path == CHAT else {"model": "chat", "prompt": "x", "max_tokens": 60}
    )
    request: dict[str, Any] = {"json": {**body, **options}, "headers": {"x-request-id": LONG}}
    async with stack.running() as client, client.post(path, **request) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert "x-berth-queue-wait-ms" in response.headers
        lines = [line.decode() async for line in response.content if line.strip()]
    assert lines[-1] == "data: [DONE]\n"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    usage = chunks[-1]["usage"]
    pieces = [choice for chunk in chunks for choice in chunk["choices"]]
    texts = [
        piece["delta"].get("content", "") if path == CHAT else piece["text"] for piece in pieces
    ]
    assert "".join(texts) == filler(0, usage["completion_tokens"])
    assert pieces[-1]["finish_reason"] in ("stop", "length")
    assert len(pieces) > 2


BAD = [
    ({"authorization": "Bearer acme-1.wrong"}, 401, "invalid_api_key"),
    ({"authorization": "Basic acme-1.sesame"}, 401, "invalid_api_key"),
    ({"authorization": "Bearer acme-view.sesame"}, 403, "not_allowed"),
    ({"authorization": "Bearer ops.sesame"}, 403, "not_allowed"),
]


@pytest.mark.parametrize(("headers", "status", "code"), BAD)
async def test_a_key_without_the_right_to_submit_is_refused(
    stack: Stack, headers: dict[str, str], status: int, code: str
) -> None:
    async with stack.running() as client:
        actual, body, _ = await post(client, chat(), **headers)
    assert (actual, body["error"]["code"]) == (status, code)
    assert "llm.queued.v1" not in stack.types()


async def test_a_revoked_key_is_refused(stack: Stack) -> None:
    async with stack.running() as client:
        assert (await post(client, chat()))[0] == 200
        stack.access(KeyRevoked(key_id="acme-1"))
        async with asyncio.timeout(PATIENCE_S):
            while (await post(client, chat()))[0] != 401:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_body"),
        ({"model": "chat", "messages": []}, 400, "invalid_body"),
        (chat(0), 400, "invalid_body"),
        (chat(-5), 400, "invalid_body"),
        (chat(n=2), 400, "invalid_body"),
        (chat(10**9), 400, "invalid_body"),
        (chat(2000), 400, "too_large"),
        ({**chat(), "model": "nowhere"}, 404, "model_not_found"),
        ({**chat(), "model": "far"}, 503, "endpoint_unavailable"),
        (
            {**chat(), "messages": [{"role": "user", "content": {"secret": "swordfish"}}]},
            400,
            "invalid_body",
        ),
    ],
)
async def test_an_invalid_body_is_refused_without_quoting_it(
    stack: Stack, body: dict[str, Any], status: int, code: str
) -> None:
    async with stack.running() as client:
        actual, answer, _ = await post(client, body)
    assert (actual, answer["error"]["code"]) == (status, code)
    assert "swordfish" not in json.dumps(answer)


async def test_a_body_that_is_not_json_is_refused(stack: Stack) -> None:
    async with stack.running() as client, client.post(CHAT, data=b"\xff\x00{") as response:
        assert response.status == 400


async def test_a_full_queue_is_answered_with_the_time_of_a_retry(tmp_path: Path) -> None:
    stack = Stack(tmp_path, line=1)
    async with stack.running() as client:
        big = chat(400, text="x" * 2000)
        serving = [asyncio.create_task(post(client, big, x_request_id=LONG))]
        await until(lambda: len(stack.lane.state.running) == 1)
        serving.append(asyncio.create_task(post(client, big)))
        await until(lambda: len(stack.lane.state.waiting) == 1)
        status, body, headers = await post(client, big)
        assert (status, body["error"]["code"]) == (429, "queue_full")
        assert int(headers["retry-after"]) >= 1
        assert 0 < int(headers["retry-after-ms"]) <= 2000
        assert headers["x-ratelimit-remaining-requests"] == "0"
        answers = await asyncio.gather(*serving)
        assert [answer[0] for answer in answers] == [200, 200]
        first_ms, second_ms = (int(answer[2]["x-berth-queue-wait-ms"]) for answer in answers)
        assert first_ms < second_ms


async def test_a_repeated_request_id_is_served_once(stack: Stack) -> None:
    async with stack.running() as client:
        both = await asyncio.gather(
            *(post(client, chat(50), x_request_id="mine") for _ in range(2))
        )
        assert [answer[0] for answer in both] == [200, 200]
        assert both[0][1]["choices"] == both[1][1]["choices"]
        assert stack.types().count("llm.queued.v1") == 1
        status, body, _ = await post(client, chat(50), x_request_id="mine")
        assert (status, body["error"]["code"]) == (409, "already_served")
        other = {"authorization": "Bearer other-1.sesame"}
        assert (await post(client, chat(50), x_request_id="mine", **other))[0] == 200


async def test_prompts_are_in_no_record(stack: Stack) -> None:
    async with stack.running() as client:
        assert (await post(client, chat(text="swordfish " * 9)))[0] == 200
    log = b" ".join(data for _, data in stack.log())
    assert b"swordfish" not in log
    assert b"emulated" not in log


async def test_a_client_that_hangs_up_is_served_and_charged(stack: Stack) -> None:
    async with stack.running() as client:
        async with client.post(
            CHAT, json=chat(200, stream=True), headers={"x-request-id": "h2"}
        ) as response:
            await response.content.readany()
        await until(lambda: "llm.finished.v1" in stack.types())
        assert stack.lane.state.running == {}


async def test_after_a_restart_the_engine_goes_on_where_it_was_charged(stack: Stack) -> None:
    async with stack.running() as client:
        asking = asyncio.create_task(post(client, chat(900), x_request_id="long"))
        await until(lambda: any(r.made_tokens > 5 for r in stack.lane.state.running.values()))
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    async with stack.running() as client:
        (request_id,) = stack.lane.state.running
        begun = stack.lane.state.running[request_id].made_tokens
        assert begun > 5
        status, body, _ = await post(client, chat(900), x_request_id="long")
        assert status == 200
    length = answer_tokens(0, request_id, 900)
    assert body["usage"]["completion_tokens"] == length
    made = [
        report["tokens"]
        for type_, data in stack.log()
        if type_ == "llm.charged.v1"
        for report in json.loads(data)["made"]
    ]
    assert sum(made) == length
    assert stack.types().count("llm.finished.v1") == 1


async def test_a_command_is_answered_once_and_served_like_the_others(stack: Stack) -> None:
    message = serve_command("from-kafka", "acme")
    value = cloudevents.encode(
        id="c1", source="/test", type=message.TYPE, data=encode(message), tenant="acme"
    )
    async with stack.running():
        for _ in range(2):
            stack.broker.append(REQUESTS, value)
        stack.broker.append(REQUESTS, b"no message")
        stack.broker.append(REQUESTS, value.replace(b"llm.serve.v1", b"job.cancel.v1"))
        await stack.feed()
        await until(lambda: "llm.finished.v1" in stack.types())
    types = stack.types()
    assert types.count("command.accepted.v1") == types.count("llm.queued.v1") == 1
    assert types.count("input.rejected.v1") == 2


async def test_the_models_are_the_endpoints(stack: Stack) -> None:
    async with stack.running() as client, client.get("/v1/models") as response:
        models = await response.json()
    assert [model["id"] for model in models["data"]] == ["chat", "far"]
