"""The official client, two majors of it, and LiteLLM as a client, before a real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from infra.llama.server import LlamaServer
from shared.contracts.llm import LlmRequestFinished, LlmRequestRejected
from tests.patience import PATIENCE_S, until
from tests.services.throttle.proxy.test_serve import CHAT, post, settled
from tests.services.throttle.real_engine.engines import (
    busy_slots,
    client_python,
    llama_server,
    run_client,
    serving_llama,
)
from tests.services.throttle.shell import ThrottleStack, chat

pytestmark = [pytest.mark.process, pytest.mark.parts]

LONG = 4000
MADE = "llamacpp:tokens_predicted_total "
CLIENTS = [
    ("openai", "openai_program.py"),
    ("older openai", "openai_program.py"),
    ("litellm", "litellm_program.py"),
]
for_each_client = pytest.mark.parametrize(("client", "program"), CLIENTS)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with llama_server(tmp_path_factory.mktemp("llama")) as server:
        yield server


def finished(stack: ThrottleStack) -> list[LlmRequestFinished]:
    return [event for event in stack.events() if isinstance(event, LlmRequestFinished)]


async def until_free(url: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await busy_slots(url):
            await asyncio.sleep(0.05)


@for_each_client
async def test_answers_streams_and_vectors_arrive(
    tmp_path: Path, llama: LlamaServer, client: str, program: str
) -> None:
    python = client_python(client)
    async with serving_llama(tmp_path, llama) as (stack, _):
        whole = await run_client(python, program, stack.url, "chat")
        streamed = await run_client(python, program, stack.url, "stream")
        vectors = await run_client(python, program, stack.url, "embeddings")
        await until(lambda: len(finished(stack)) == 3)
    assert whole["text"]
    assert whole["tokens"] == 12
    assert streamed["text"]
    assert streamed.get("tokens", 12) == 12
    assert len(vectors["vectors"]) == 2
    assert [event.output_tokens for event in finished(stack)] == [12, 12, 0]
    assert all(event.outcome == "completed" for event in finished(stack))
    if client != "litellm":
        assert whole["version"].startswith("3." if client == "openai" else "2.")


@for_each_client
async def test_a_client_that_leaves_frees_its_slot(
    tmp_path: Path, llama: LlamaServer, client: str, program: str
) -> None:
    python = client_python(client)
    async with serving_llama(tmp_path, llama) as (stack, _):
        result = await run_client(python, program, stack.url, "cancel")
        end = await settled(stack)
        await until_free(llama.url)
    assert result["chunks"] == 3
    assert end.outcome == "cancelled"
    assert 1 <= end.output_tokens < LONG


@for_each_client
async def test_errors_have_the_classes_of_the_client(
    tmp_path: Path, llama: LlamaServer, client: str, program: str
) -> None:
    python = client_python(client)
    async with serving_llama(tmp_path, llama) as (stack, _):
        result = await run_client(python, program, stack.url, "error")
        end = await settled(stack)
    (unknown, unknown_status), (long, long_status) = result["errors"]
    assert (unknown, unknown_status) == ("NotFoundError", 404)
    assert long in ("BadRequestError", "ContextWindowExceededError")
    assert long_status == 400
    assert (end.outcome, end.prompt_tokens, end.output_tokens) == ("failed", 0, 0)


@for_each_client
async def test_a_full_queue_is_retried_until_there_is_room(
    tmp_path: Path, llama: LlamaServer, client: str, program: str
) -> None:
    python = client_python(client)
    async with serving_llama(tmp_path, llama, slots=1, queue_limit=1) as (stack, session):
        holders = [asyncio.create_task(hold(session)) for _ in range(2)]
        await until(
            lambda: (len(stack.lane.state.running), len(stack.lane.state.waiting)) == (1, 1)
        )
        asking = asyncio.create_task(run_client(python, program, stack.url, "retry"))
        await until(lambda: any(is_full(event) for event in stack.events()))
        for holder in holders:
            holder.cancel()
        result = await asking
        await until_free(llama.url)
    assert result["status"] == 200
    assert result.get("retries", 1) >= 1


async def test_what_no_stream_asked_for_is_stopped_as_well(
    tmp_path: Path, llama: LlamaServer
) -> None:
    async with serving_llama(tmp_path, llama) as (stack, session):
        asking = asyncio.create_task(post(session, chat(max_tokens=LONG)))
        await until(lambda: len(stack.lane.state.running) == 1)
        asking.cancel()
        end = await settled(stack)
        await until_free(llama.url)
    assert end.outcome == "cancelled"
    assert end.output_tokens < LONG


@pytest.mark.parametrize("route", ["chat/completions", "completions", "responses"])
@pytest.mark.parametrize(
    "fields",
    [
        {"n_predict": 60},
        {"n_predict": 60, "use_beam_search": True},
        {"max_completion_tokens": 60},
        {"max_output_tokens": 1, "max_tokens": 2, "n_cmpl": 3},
    ],
)
async def test_no_field_makes_tokens_that_are_not_charged(
    tmp_path: Path, llama: LlamaServer, route: str, fields: dict[str, Any]
) -> None:
    body = {"max_tokens": 1, "max_output_tokens": 1, "stream": True, "prompt": "hi", "input": "hi"}
    body = {**chat(), **body, **fields}
    if "use_beam_search" in fields:
        del body["stream"]
    before = await made_tokens(llama.url)
    async with serving_llama(tmp_path, llama) as (stack, session):
        async with session.post(f"/v1/{route}", json=body) as response:
            assert response.status == 200
            await response.read()
        end = await settled(stack)
        await until_free(llama.url)
    made = await made_tokens(llama.url) - before
    assert end.outcome == "completed"
    # A response of several answers has one chunk with text more than it has tokens.
    assert 1 < made <= end.output_tokens <= made + 1


async def made_tokens(url: str) -> int:
    """Return the output tokens that the engine has counted in all."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    (count,) = (line.split()[1] for line in lines if line.startswith(MADE))
    return int(float(count))


async def hold(session: aiohttp.ClientSession) -> Any:
    async with session.post(CHAT, json=chat(max_tokens=LONG, stream=True)) as response:
        return await response.read()


def is_full(event: object) -> bool:
    return isinstance(event, LlmRequestRejected) and event.reason == "queue_full"
