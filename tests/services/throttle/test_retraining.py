"""An endpoint shares its GPUs with retraining: its engines get a share that follows deadlines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.throttle.retraining import RetrainingShare
from shared.contracts.endpoints import SharedWithRetraining
from shared.contracts.llm import EndpointCapacityNoted
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.patience import until
from tests.services.throttle.shell import MODEL, ThrottleStack

ADAPTERS = ("user-a", "user-b")
EASY = SharedWithRetraining(ttft_s=60, tpot_s=60, freshness_s=3600)
MISSED = SharedWithRetraining(ttft_s=1e-6, tpot_s=60, freshness_s=3600)
BODY = {
    "model": MODEL,
    "max_tokens": 4,
    "ignore_eos": True,
    "messages": [{"role": "user", "content": "Hello"}],
}


@asynccontextmanager
async def engine(*retrained: str) -> AsyncIterator[str]:
    options = EmulatorOptions((MODEL,), adapters=ADAPTERS, retrained=retrained, speed=50.0)
    async with EngineEmulator(options).listening("127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}"


async def standing(url: str) -> dict[str, Any]:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/retraining") as response:
        document: dict[str, Any] = await response.json()
        return document


async def serve(client: aiohttp.ClientSession, requests: int = 1) -> None:
    for _ in range(requests):
        async with client.post("/v1/chat/completions", json=BODY) as answer:
            assert answer.status == 200, await answer.text()


def share_of(stack: ThrottleStack) -> RetrainingShare:
    return stack.shell._dispatchers[0].retraining


def noted(stack: ThrottleStack) -> list[float | None]:
    events = (event for event in stack.events() if isinstance(event, EndpointCapacityNoted))
    return [event.retraining_share for event in events]


async def until_noted(stack: ThrottleStack, share: float) -> None:
    await until(lambda: stack.lane.state.retraining_share == share)


async def configure(stack: ThrottleStack, retraining: SharedWithRetraining | None) -> None:
    stack.endpoint = stack.endpoint.model_copy(update={"retraining": retraining})
    stack.access(stack.endpoint)
    await stack.feed()
    await until(lambda: stack.lane.state.endpoint == stack.endpoint)


async def test_adapters_are_updated_beside_requests_that_meet_their_deadlines(
    tmp_path: Path,
) -> None:
    async with engine(*ADAPTERS) as url:
        stack = ThrottleStack(tmp_path, url, retraining=EASY)
        async with stack.running() as client:
            await until(lambda: stack.lane.state.retraining_share == 1.0)
            await serve(client, 3)
            while any(not item["version"] for item in (await standing(url))["adapters"].values()):
                await serve(client)
            await share_of(stack).decide()
            assert (await standing(url))["share"] == 1.0
    assert noted(stack)[-1] == 1.0


async def test_missed_deadlines_halve_the_share_and_the_ledger_has_it(tmp_path: Path) -> None:
    async with engine(*ADAPTERS) as url:
        stack = ThrottleStack(tmp_path, url, retraining=MISSED)
        async with stack.running() as client:
            await until(lambda: stack.lane.state.retraining_share == 1.0)
            for share in (0.5, 0.25):
                await serve(client)
                await share_of(stack).decide()
                assert (await standing(url))["share"] == share
                await until_noted(stack, share)
        async with stack.running():
            # A new process goes on with the share of the ledger, a window without requests.
            await until(lambda: stack.lane.state.retraining_share == 0.3)
            assert (await standing(url))["share"] == 0.3


async def test_an_endpoint_that_no_longer_shares_stops_retraining(tmp_path: Path) -> None:
    async with engine(*ADAPTERS) as url:
        stack = ThrottleStack(tmp_path, url, retraining=EASY)
        async with stack.running():
            await until(lambda: stack.lane.state.retraining_share == 1.0)
            await configure(stack, None)
            await share_of(stack).decide()
            assert (await standing(url))["share"] == 0.0
            await until(lambda: stack.lane.state.retraining_share is None)


@pytest.mark.parametrize("retraining", [None, EASY])
async def test_an_engine_that_retrains_nothing_serves_as_before(
    tmp_path: Path, retraining: SharedWithRetraining | None
) -> None:
    async with engine() as url:
        stack = ThrottleStack(tmp_path, url, retraining=retraining)
        async with stack.running() as client:
            await share_of(stack).decide()
            await serve(client)
            assert share_of(stack).value == (None if retraining is None else 1.0)
