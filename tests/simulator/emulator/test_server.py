"""An emulated engine serves the official client, and frees at once what a client leaves.

Where a request must not end by itself the engine is so slow that it would run for hours.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import openai
import pytest

from simulator.emulator.faults import FaultRates
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from simulator.llm.batching import EngineLimits
from tests.emulated_engine import EmulatedEngine
from tests.patience import PATIENCE_S

MODEL, ADAPTER = "org/Model-7B", "org/adapter"
FAST = 10_000.0
ENDLESS = 0.3
HELLO: list[Any] = [{"role": "user", "content": "Hello there, engine."}]
LONG = {"max_tokens": 5000, "ignore_eos": True}


class Engine(EmulatedEngine):
    """An engine that serves, a client of it, and its metrics."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        super().__init__(port, session)
        self.port = port
        self.client = openai.AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key="secret", max_retries=0, timeout=PATIENCE_S
        )

    def post(self, path: str, body: object, **headers: str) -> Any:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes | io.BytesIO) else json.dumps(body).encode()
        return self.session.post(f"{self.url}{path}", data=data, headers=fields)

    def chat(self, **fields: Any) -> Any:
        return self.post("/v1/chat/completions", {"model": MODEL, "messages": HELLO, **fields})


@asynccontextmanager
async def serving(speed: float = FAST, **options: Any) -> AsyncIterator[Engine]:
    emulator = EngineEmulator(EmulatorOptions((MODEL,), (ADAPTER,), speed=speed, **options))
    limit = aiohttp.ClientTimeout(PATIENCE_S)
    async with (
        emulator.listening("127.0.0.1", 0) as port,
        aiohttp.ClientSession(timeout=limit) as session,
    ):
        engine = Engine(port, session)
        async with engine.client:
            yield engine


async def events(response: aiohttp.ClientResponse) -> list[str]:
    text = (await response.read()).decode()
    assert text.endswith("\n\n")
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line]


async def test_the_official_client_gets_an_answer_that_says_what_it_is() -> None:
    async with serving() as engine:
        answer: Any = await engine.client.chat.completions.create(
            model=MODEL, messages=HELLO, max_completion_tokens=7, extra_body={"ignore_eos": True}
        )
    assert answer.system_fingerprint == "berth-emulated-engine"
    (choice,) = answer.choices
    assert choice.message.content.startswith("[emulated] ")
    assert choice.finish_reason == "length"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (5, 7)


async def test_a_streamed_answer_has_a_chunk_per_token_and_the_usage_counts_them() -> None:
    async with serving() as engine:
        stream = await engine.client.chat.completions.create(
            model=ADAPTER, messages=HELLO, n=3, stream=True, stream_options={"include_usage": True}
        )
        chunks: list[Any] = [chunk async for chunk in stream]
        generated = await engine.metric("generation_tokens_total", model_name=MODEL)
    words = [choice for chunk in chunks for choice in chunk.choices if choice.delta.content]
    assert chunks[-1].usage.completion_tokens == len(words) == generated
    assert chunks[-1].choices == []
    assert {choice.index for choice in words} == {0, 1, 2}
    assert all(chunk.model == ADAPTER for chunk in chunks)
    ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert sum(reason in ("stop", "length") for reason in ends) == 3


async def test_the_same_request_gets_the_same_answer_streamed_or_not() -> None:
    async with serving() as engine:
        ask = engine.client.completions.create
        whole: Any = await ask(model=MODEL, prompt=["one", "two"], max_tokens=5000)
        stream = await ask(model=MODEL, prompt=["one", "two"], max_tokens=5000, stream=True)
        texts = {0: "", 1: ""}
        async for chunk in stream:
            for choice in chunk.choices:
                texts[choice.index] += choice.text
    assert [choice.text for choice in whole.choices] == [texts[0], texts[1]]
    assert {choice.finish_reason for choice in whole.choices} == {"stop"}
    assert whole.usage.prompt_tokens == 2


async def test_a_response_is_whole_or_a_stream_of_named_events() -> None:
    async with serving() as engine:
        whole = await engine.client.responses.create(
            model=MODEL, input="Hello", max_output_tokens=5000
        )
        async with engine.client.responses.stream(
            model=MODEL, input=[{"role": "user", "content": "Hello"}], max_output_tokens=5000
        ) as stream:
            kinds = [event.type async for event in stream]
            last: Any = await stream.get_final_response()
    assert whole.status == "completed"
    assert last.output_text == whole.output_text
    assert last.usage.output_tokens == kinds.count("response.output_text.delta")


async def test_embeddings_depend_on_their_input_alone() -> None:
    async with serving() as engine:
        make = engine.client.embeddings.create
        both = await make(model=MODEL, input=["one", "two"], dimensions=8)
        plain = await make(model=MODEL, input=[[1, 2]], encoding_format="float")
        again = await make(model=MODEL, input="two", dimensions=8)
        generated = await engine.metric("generation_tokens_total")
    assert both.data[1].embedding == pytest.approx(again.data[0].embedding)
    assert sum(number * number for number in plain.data[0].embedding) == pytest.approx(1)
    assert [len(both.data[0].embedding), plain.usage.prompt_tokens, generated] == [8, 2, 0]


async def test_models_and_adapters_are_listed_with_their_context() -> None:
    async with serving(limits=EngineLimits(500)) as engine:
        models: dict[str, Any] = {item.id: item async for item in engine.client.models.list()}
    assert list(models) == [MODEL, ADAPTER]
    assert models[ADAPTER].parent == MODEL
    assert models[MODEL].max_model_len == 499


async def test_one_model_can_be_looked_up() -> None:
    async with serving() as engine:
        assert (await engine.client.models.retrieve(MODEL)).id == MODEL
        with pytest.raises(openai.NotFoundError):
            await engine.client.models.retrieve("org/none")


async def test_a_client_that_leaves_a_stream_frees_its_slot() -> None:
    async with serving(ENDLESS, limits=EngineLimits(batch_requests=1)) as engine:
        stream = await engine.client.chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, max_tokens=5000, extra_body=LONG
        )
        assert (await anext(aiter(stream))).choices
        assert await engine.metric("num_requests_running") == 1
        assert await engine.metric("kv_cache_usage_perc") > 0
        await stream.close()
        await engine.until("request_success_total", 1, finished_reason="abort")
        assert await engine.metric("num_requests_running") == 0
        assert await engine.metric("kv_cache_usage_perc") == 0
        async with engine.chat(max_tokens=1) as response:
            assert response.status == 200


async def test_a_client_that_leaves_an_answer_frees_its_slot() -> None:
    async with serving(ENDLESS) as engine:
        task = asyncio.create_task(engine.chat(n=2, **LONG).__aenter__())
        await engine.until("num_requests_running", 2)
        task.cancel()
        await engine.until("request_success_total", 2, finished_reason="abort")
        assert await engine.metric("num_requests_running") == 0


async def test_a_client_that_leaves_the_queue_never_runs() -> None:
    async with serving(ENDLESS, limits=EngineLimits(batch_requests=1)) as engine:
        first = asyncio.create_task(engine.chat(**LONG).__aenter__())
        await engine.until("num_requests_running", 1)
        second = asyncio.create_task(engine.chat(**LONG).__aenter__())
        await engine.until("num_requests_waiting", 1)
        second.cancel()
        await engine.until("num_requests_waiting", 0)
        assert await engine.metric("num_requests_running") == 1
        first.cancel()
        await engine.until("num_requests_running", 0)


async def test_a_client_that_never_reads_holds_no_slot() -> None:
    body = json.dumps({"model": MODEL, "prompt": "a", "stream": True, **LONG}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    async with serving() as engine:
        reader, writer = await asyncio.open_connection("127.0.0.1", engine.port, limit=1)
        writer.write(head.encode() + body)
        await engine.until("request_success_total", 1, finished_reason="length")
        assert await engine.metric("num_requests_running") == 0
        writer.close()
        await writer.wait_closed()


async def test_ten_thousand_headers_are_refused() -> None:
    async with serving() as engine:
        reader, writer = await asyncio.open_connection("127.0.0.1", engine.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: a\r\n")
        writer.write(b"".join(b"x-%d: y\r\n" % number for number in range(10_000)) + b"\r\n")
        answer = b""
        # The server closes with headers unread, which may reset the connection.
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                answer = await reader.readline()
        assert answer in (b"", b"HTTP/1.0 400 Bad Request\r\n")
        writer.close()
        async with engine.session.get(f"{engine.url}/health") as response:
            assert response.status == 200


async def test_a_full_queue_refuses_with_503() -> None:
    limits = EngineLimits(batch_requests=1)
    async with serving(ENDLESS, limits=limits, queue_limit=1) as engine:
        first = asyncio.create_task(engine.chat(**LONG).__aenter__())
        await engine.until("num_requests_running", 1)
        second = asyncio.create_task(engine.chat(**LONG).__aenter__())
        await engine.until("num_requests_waiting", 1)
        with pytest.raises(openai.InternalServerError) as refused:
            await engine.client.completions.create(model=MODEL, prompt="a")
        assert refused.value.status_code == 503
        for task in (first, second):
            task.cancel()


async def test_a_prefix_is_read_once() -> None:
    prompt = "0123456789abcdef" * 40
    async with serving() as engine:
        for cached in (0, 159):
            async with engine.post(
                "/v1/completions", {"model": MODEL, "prompt": prompt, "max_tokens": 1}
            ) as response:
                usage = (await response.json())["usage"]
            assert usage["prompt_tokens_details"] == {"cached_tokens": cached}
        assert await engine.metric("prefix_cache_queries_total") == 320
        assert await engine.metric("prefix_cache_hits_total") == 159


BAD: list[tuple[str, object, int, str]] = [
    ("/v1/chat/completions", b"{", 400, "body: not valid JSON"),
    ("/v1/chat/completions", b"\xff", 400, "body: not valid JSON"),
    ("/v1/chat/completions", b"[" * 100_000, 400, "body"),
    ("/v1/chat/completions", {"model": MODEL}, 400, "messages"),
    ("/v1/chat/completions", {"model": MODEL, "messages": []}, 400, "messages: "),
    ("/v1/chat/completions", {"model": "none", "messages": HELLO}, 404, "`none`"),
    ("/v1/completions", {"model": MODEL, "prompt": "a", "max_tokens": 0}, 400, "max_tokens: "),
    ("/v1/completions", {"model": MODEL, "prompt": "a", "n": 129}, 400, "n: "),
    ("/v1/completions", {"model": MODEL, "prompt": ["a"] * 99, "n": 99}, 400, "n: 99 answers"),
    ("/v1/completions", {"model": MODEL, "prompt": [1, "a"]}, 400, "prompt: "),
    (
        "/v1/completions",
        {"model": MODEL, "prompt": "a", "min_tokens": 9, "max_tokens": 8},
        400,
        "min_tokens: 9 is above",
    ),
    ("/v1/embeddings", {"model": MODEL, "input": []}, 400, "input: "),
    ("/v1/embeddings", {"model": MODEL, "input": "a", "dimensions": 0}, 400, "dimensions: "),
    ("/v1/responses", {"model": MODEL, "input": 5}, 400, "input: "),
    ("/tokenize", {"model": MODEL}, 400, "prompt: "),
    ("/v1/nope", {}, 404, "/v1/nope"),
    ("/v1/models", {}, 405, "/v1/models"),
]


@pytest.mark.parametrize(("path", "body", "status", "text"), BAD)
async def test_bad_input_is_met_with_the_field_and_the_rule(
    path: str, body: object, status: int, text: str
) -> None:
    async with serving() as engine, engine.post(path, body) as response:
        assert response.status == status
        error = (await response.json())["error"]
        assert text in error["message"]
        assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("fields", [{"prompt": "x" * 4000}, {"prompt": "x", "max_tokens": 999}])
async def test_what_can_never_fit_is_refused(fields: Mapping[str, Any]) -> None:
    async with serving(limits=EngineLimits(1000)) as engine:
        with pytest.raises(openai.BadRequestError) as refused:
            await engine.client.completions.create(model=MODEL, **fields)
        assert refused.value.code == "context_length_exceeded"
        assert refused.value.param == "prompt"


async def test_a_body_that_is_too_large_is_not_read() -> None:
    body = io.BytesIO(b" " * (17 * 1024 * 1024))
    async with serving() as engine, engine.post("/v1/completions", body) as response:
        assert response.status == 413
        assert "body: too large" in (await response.json())["error"]["message"]


async def test_keys_are_checked_where_there_are_any() -> None:
    async with serving(keys=("secret", "other")) as engine:
        assert (await engine.client.models.list()).data
        with pytest.raises(openai.AuthenticationError) as refused:
            await engine.client.with_options(api_key="wrong").models.list()
        assert refused.value.code == "invalid_api_key"
        async with engine.session.get(f"{engine.url}/health") as response:
            assert response.status == 200


async def test_tokens_can_be_counted_and_the_load_read() -> None:
    async with serving() as engine:
        async with engine.post("/tokenize", {"prompt": "12345678"}) as response:
            assert (await response.json())["count"] == 2
        async with engine.post("/tokenize", {"messages": HELLO}) as response:
            assert (await response.json())["count"] == 5
        async with engine.session.get(f"{engine.url}/load") as response:
            assert (await response.json())["server_load"] == 0
            assert response.headers["server"] == "berth-emulated-engine"


@asynccontextmanager
async def faulty(fault: str, **fields: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    """Make a request to which the fault happens."""
    async with serving(faults=FaultRates({}, by_header=True)) as engine:
        body = {"model": MODEL, "messages": HELLO, "max_tokens": 9, "ignore_eos": True, **fields}
        async with engine.post("/v1/chat/completions", body, x_berth_fault=fault) as response:
            yield response


async def test_an_error_is_a_500() -> None:
    async with faulty("error") as response:
        assert response.status == 500


async def test_a_hang_lasts_until_the_client_leaves() -> None:
    async with serving(faults=FaultRates({"hang": 1.0})) as engine:
        task = asyncio.create_task(engine.chat().__aenter__())
        await until_load(engine, 1)
        assert not task.done()
        task.cancel()
        await until_load(engine, 0)


async def until_load(engine: Engine, load: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with engine.session.get(f"{engine.url}/load") as response:
                if (await response.json())["server_load"] == load:
                    return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reset_never_ends_cleanly(stream: bool) -> None:
    with pytest.raises(aiohttp.ClientError):
        async with faulty("reset", stream=stream) as response:
            await response.read()


async def test_a_cut_stream_ends_cleanly_without_its_end() -> None:
    async with faulty("cut", stream=True) as response:
        lines = await events(response)
    assert "[DONE]" not in lines
    assert len(lines) == 1 + 9


async def test_a_wrong_usage_is_ten_times_the_tokens() -> None:
    async with faulty("wrong-usage", stream=True, stream_options={"include_usage": True}) as answer:
        lines = await events(answer)
    assert json.loads(lines[-2])["usage"]["completion_tokens"] == 90
    assert len(lines) == 1 + 9 + 3


async def test_a_malformed_answer_is_not_json() -> None:
    async with faulty("malformed", stream=True) as response:
        lines = await events(response)
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(lines[-3])
    async with faulty("malformed") as response:
        with pytest.raises(ValueError, match="Expecting"):
            await response.json()


async def test_an_unknown_fault_is_refused() -> None:
    async with faulty("nope") as response:
        assert response.status == 400
        assert "x-berth-fault" in (await response.json())["error"]["message"]


async def test_a_header_causes_no_fault_where_it_may_not() -> None:
    body = {"model": MODEL, "messages": HELLO}
    async with (
        serving() as engine,
        engine.post("/v1/chat/completions", body, x_berth_fault="error") as response,
    ):
        assert response.status == 200
