"""A stream becomes the answer that the engine gives without streaming."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web

from services.throttle.relay import assemble
from services.throttle.relay.assemble import AnswerAssembler, MalformedStream
from services.throttle.relay.request import RequestBody, Route
from services.throttle.relay.sse import SseParser
from services.throttle.upstreams.body import ENCODER
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.patience import PATIENCE_S
from tests.services.throttle.relay.serving import serving
from tests.services.throttle.relay.streams import (
    DONE,
    USAGE,
    chat_stream,
    delta,
    event,
    parse,
    responses_stream,
    text,
    usage,
)

MODEL = "org/Model-7B"
OWN = ("id", "created", "created_at")
"""Fields that differ between two answers to one request."""


def assembled(stream: bytes, route: Route = "chat/completions") -> Any:
    answer = AnswerAssembler(route)
    for item in parse(stream):
        answer.add(item)
    return json.loads(answer.answer())


def message(*deltas: Any) -> Any:
    (choice,) = assembled(b"".join(event(delta(**fields)) for fields in deltas))["choices"]
    return choice["message"]


@pytest.mark.parametrize("name", ["", "chunk"])
def test_the_words_of_a_stream_are_its_message(name: str) -> None:
    assert assembled(chat_stream(name=name)) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "org/M",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": 'one two" three'},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE,
    }


def test_parallel_calls_of_tools_are_joined() -> None:
    def part(index: int, arguments: str, **fields: Any) -> Any:
        call = {"index": index, "function": {"arguments": arguments}}
        if fields:
            call |= {"id": fields["id"], "type": "function"}
            call["function"] = {"name": fields["name"], "arguments": arguments}
        return {"tool_calls": [call]}

    assert message(
        {"role": "assistant", "content": None},
        part(0, "", id="call_a", name="get_time"),
        part(0, '{"zone":'),
        part(1, '{"city":"P', id="call_b", name="get_weather"),
        part(0, '"UTC"}'),
        part(1, 'aris"}'),
    ) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_a",
                "type": "function",
                "function": {"name": "get_time", "arguments": '{"zone":"UTC"}'},
            },
            {
                "id": "call_b",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
            },
        ],
    }


def test_reasoning_refusals_and_unknown_fields_are_kept() -> None:
    assert message(
        {"role": "assistant", "reasoning_content": "think"},
        {"reasoning_content": "ing", "poem": "ro"},
        {"poem": "ses", "score": 2},
        {"refusal": "no"},
    ) == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "thinking",
        "poem": "roses",
        "score": 2,
        "refusal": "no",
    }


def test_choices_are_in_order_with_their_own_reasons() -> None:
    chunks = [
        delta(index=1, content="b"),
        delta(index=0, content="a"),
        delta("length", index=1, content="c"),
        delta("stop", index=0),
    ]
    choices = assembled(b"".join(map(event, chunks)))["choices"]
    assert [(item["message"]["content"], item["finish_reason"]) for item in choices] == [
        ("a", "stop"),
        ("bc", "length"),
    ]


def test_log_probabilities_are_in_one_list() -> None:
    chunks = [delta(content=word) for word in "ab"]
    for chunk, word in zip(chunks, "ab", strict=True):
        entry = {"token": word, "logprob": -0.25, "bytes": [1], "top_logprobs": []}
        chunk["choices"][0]["logprobs"] = {"content": [entry], "refusal": None}
    (choice,) = assembled(b"".join(map(event, chunks)))["choices"]
    assert [entry["token"] for entry in choice["logprobs"]["content"]] == ["a", "b"]
    assert choice["logprobs"]["refusal"] is None


def test_text_completions_with_their_log_probabilities() -> None:
    chunks = [text("a"), text("b"), text("", "stop")]
    for number, chunk in enumerate(chunks[:2]):
        chunk["choices"][0]["logprobs"] = {"tokens": ["t"], "text_offset": [number]}
    answer = assembled(b"".join(map(event, chunks)) + DONE, "completions")
    assert answer["object"] == "text_completion"
    assert answer["choices"] == [
        {
            "index": 0,
            "text": "ab",
            "logprobs": {"tokens": ["t", "t"], "text_offset": [0, 1]},
            "finish_reason": "stop",
        }
    ]


def test_fields_of_the_answer_are_the_last_that_are_not_null() -> None:
    first = {**delta(content="x"), "system_fingerprint": "fp", "service_tier": None}
    last = {**usage(), "system_fingerprint": None, "x_engine": {"a": 1}}
    answer = assembled(event(first) + event(last))
    assert (answer["system_fingerprint"], answer["service_tier"]) == ("fp", None)
    assert answer["x_engine"] == {"a": 1}


def test_fields_of_a_row_of_texts_are_the_last_that_each_has() -> None:
    def named(id_: str, **more: Any) -> bytes:
        head = {"id": id_, "object": "chat.completion.chunk", "created": 1, "model": "m", **more}
        return event({**head, "choices": [{"index": 0, "delta": {"content": id_}}]})

    stream = named("a") + named("b", system_fingerprint="f") + named("c") + named("d", usage=None)
    answer = assembled(stream + named("e"))
    assert (answer["id"], answer["system_fingerprint"], answer["usage"]) == ("e", "f", None)
    assert answer["choices"][0]["message"]["content"] == "abcde"


@pytest.mark.parametrize("end", ["completed", "incomplete", "failed"])
def test_a_response_is_that_of_its_last_event(end: str) -> None:
    stream = responses_stream(end)
    assert assembled(stream, "responses")["status"] == end
    unnamed = stream.replace(f"event: response.{end}\n".encode(), b"")
    assert assembled(unnamed, "responses") == assembled(stream, "responses")


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        DONE,
        b"data: {\n\n",
        b"data: []\n\n",
        b'data: {"choices":{}}\n\n',
        b'data: {"choices":[1]}\n\n',
        b'data: {"choices":[{"index":"0"}]}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'data: {"a":"\xff"}\n\n',
    ],
)
@pytest.mark.parametrize("route", ["chat/completions", "completions"])
def test_a_malformed_stream_is_an_error(stream: bytes, route: Route) -> None:
    with pytest.raises(MalformedStream):
        assembled(stream, route)


@pytest.mark.parametrize("stream", [b"", b"event: response.completed\ndata: {\n\n"])
def test_a_malformed_response_is_an_error(stream: bytes) -> None:
    with pytest.raises(MalformedStream):
        assembled(stream, "responses")


@pytest.mark.parametrize(
    ("chunk", "route"),
    [
        (event({"error": {"message": "m", "code": 7}}), "chat/completions"),
        (event({"type": "error", "message": "m", "code": 7}, "error"), "responses"),
        (event({"type": "error", "message": "m", "code": 7}), "responses"),
    ],
)
def test_an_error_within_a_stream_is_kept(chunk: bytes, route: Route) -> None:
    answer = AnswerAssembler(route)
    for item in parse(chunk):
        answer.add(item)
    assert answer.error is not None
    assert (answer.error["message"], answer.error["code"]) == ("m", 7)


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "MOST_ANSWER_BYTES", 500)
    with pytest.raises(MalformedStream, match="more than 500 bytes"):
        assembled(chat_stream())


@pytest.mark.parametrize(
    ("route", "fields"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "hi"}], "n": 3}),
        ("completions", {"prompt": ["one", "two"], "n": 2}),
        ("responses", {"input": "hi"}),
    ],
)
async def test_the_emulated_engine_gives_the_same_answer(
    route: Route, fields: dict[str, Any]
) -> None:
    body = RequestBody.decode(route, json.dumps({"model": MODEL, **fields}).encode())
    emulator = EngineEmulator(EmulatorOptions((MODEL,), speed=10_000.0))
    limit = aiohttp.ClientTimeout(PATIENCE_S)
    async with (
        emulator.listening("127.0.0.1", 0) as port,
        aiohttp.ClientSession(timeout=limit) as session,
    ):
        url = f"http://127.0.0.1:{port}/v1/{route}"
        async with session.post(url, data=ENCODER.encode(body.fields)) as response:
            whole = await response.json()
        parser, answer = SseParser(), AnswerAssembler(route)
        async with session.post(url, data=ENCODER.encode(body.with_stream())) as response:
            async for piece in response.content.iter_any():
                for item in parser.feed(piece):
                    answer.add(item)
    streamed = json.loads(answer.answer())
    # The second of two equal prompts is in the engine's cache.
    for document in (whole, streamed):
        for name in ("prompt_tokens_details", "input_tokens_details"):
            document["usage"].pop(name, None)
        for name in OWN:
            document.pop(name, None)
    assert streamed == whole


async def test_the_official_client_reads_what_is_assembled() -> None:
    async def answer(request: web.Request) -> web.Response:
        route: Route = "responses" if "responses" in request.path else "chat/completions"
        stream = responses_stream() if route == "responses" else chat_stream()
        document = AnswerAssembler(route)
        for item in parse(stream):
            document.add(item)
        return web.Response(body=document.answer(), content_type="application/json")

    async with serving(answer) as url:
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", timeout=PATIENCE_S)
        async with client:
            chat: Any = await client.chat.completions.create(model="m", messages=[])
            response: Any = await client.responses.create(model="m", input="hi")
    assert chat.choices[0].message.content == 'one two" three'
    assert chat.usage.completion_tokens == 3
    assert (response.status, response.usage.output_tokens) == ("completed", 3)
