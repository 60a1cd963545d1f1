"""An emulated engine retrains adapters within the share that it is given, and serves first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from simulator.llm.batching import EngineLimits
from tests.patience import PATIENCE_S

MODEL, USERS = "m", ("user-a", "user-b", "user-c")
PATH = "/retraining"
TOKENS = 1_000
"""Tokens of the KV cache: a batch in progress holds 800 of them."""


@asynccontextmanager
async def engine(speed: float, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    settings = {"adapters": USERS, "retrained": USERS, "speed": speed, **options}
    emulator = EngineEmulator(EmulatorOptions((MODEL,), **settings))
    timeout = aiohttp.ClientTimeout(PATIENCE_S)
    async with (
        emulator.listening("127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", timeout=timeout) as client,
    ):
        yield client


async def standing(client: aiohttp.ClientSession) -> Any:
    async with client.get(PATH) as response:
        return await response.json()


async def send(client: aiohttp.ClientSession, **fields: object) -> tuple[int, Any]:
    async with client.put(PATH, json=fields) as response:
        return response.status, await response.json()


async def complete(client: aiohttp.ClientSession, tokens: int) -> None:
    body = {"model": MODEL, "prompt": "a", "max_tokens": tokens, "ignore_eos": True}
    async with client.post("/v1/completions", json=body) as response:
        assert response.status == 200


def versions(document: Mapping[str, Any]) -> list[int]:
    return [adapter["version"] for adapter in document["adapters"].values()]


async def test_without_requests_the_whole_engine_retrains_and_gaps_stay_small() -> None:
    async with engine(speed=2_000) as client:
        assert (await standing(client))["retrained_tokens"] == 0
        await send(client, share=1.0, freshness_s=1e6)
        while min(versions(document := await standing(client)), default=0) < 3:
            pass
        assert max(adapter["gap"] for adapter in document["adapters"].values()) < 0.5


async def test_nothing_is_retrained_without_a_share() -> None:
    async with engine(speed=2_000) as client:
        await complete(client, 50)
        assert versions(await standing(client)) == []
        await send(client, share=1.0)
        status, stopped = await send(client, share=0.0)
        assert status == 200
        await complete(client, 50)
        assert (await standing(client))["retrained_tokens"] == stopped["retrained_tokens"]


async def test_a_request_gets_the_memory_of_a_batch_in_progress() -> None:
    # A batch takes many iterations: one is in progress whenever a request comes.
    limits = EngineLimits(kv_tokens=TOKENS + 30)
    async with engine(speed=20, limits=limits) as client:
        await send(client, share=1.0, ttft_s=0.02, tpot_s=0.004, freshness_s=1e6)
        while not (document := await standing(client))["evictions"]:
            await complete(client, 300)
        assert document["retrained_tokens"] > 0


@pytest.mark.parametrize("body", [{"share": 1.5}, {}, {"share": 1, "tpot_s": 0}])
async def test_an_invalid_share_is_refused(body: Mapping[str, object]) -> None:
    async with engine(speed=1) as client:
        status, answer = await send(client, **body)
        assert status == 400
        assert answer["error"]["message"]


async def test_an_engine_without_adapters_to_retrain_says_so() -> None:
    async with engine(speed=1, retrained=()) as client:
        status, answer = await send(client, share=1)
        assert (status, "--retrain" in answer["error"]["message"]) == (404, True)


def test_only_adapters_of_the_engine_are_retrained() -> None:
    with pytest.raises(ValueError, match="retrain: x: not an adapter"):
        EmulatorOptions((MODEL,), retrained=("x",))
