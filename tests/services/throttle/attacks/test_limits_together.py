"""Faults of another proxy: limits that requests pass together, by replicas, or by streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from services.throttle.app import ThrottleShell
from services.throttle.settings import ThrottleSettings
from shared.bus.logs.memory import MemoryLog
from shared.contracts.endpoints import TokenBudget
from shared.contracts.llm import LlmRequestFinished, LlmRequestQueued
from shared.telemetry.metrics import Metrics
from shared.telemetry.setup import Telemetry
from shared.telemetry.spans import Spans
from simulator.emulator.options import EmulatorOptions
from simulator.emulator.server import EngineEmulator
from tests.services.throttle.proxy.test_serve import CHAT
from tests.services.throttle.shell import KEY, MODEL, MemoryAnswers, ThrottleStack, chat

LIMIT = 100
OUTPUT = 40
BUDGET = TokenBudget(holder="tenant", unit="tokens", limit=LIMIT, memory="window", period_s=3600)


@pytest.mark.parametrize("stream", [False, True], ids=["litellm_18730", "litellm_41610_streams"])
async def test_requests_that_are_sent_together_never_pass_a_limit_of_tokens(
    tmp_path: Path, stream: bool
) -> None:
    async with EngineEmulator(EmulatorOptions((MODEL,))).listening("127.0.0.1", 0) as port:
        stack = ThrottleStack(tmp_path, f"http://127.0.0.1:{port}", budgets=(BUDGET,))
        async with stack.running() as client:
            body = chat(max_tokens=OUTPUT, ignore_eos=True, stream=stream)

            async def send() -> int:
                async with client.post(CHAT, json=body) as response:
                    await response.read()
                    return response.status

            statuses = await asyncio.gather(*(send() for _ in range(8)))
    events = stack.events()
    queued = [event for event in events if isinstance(event, LlmRequestQueued)]
    reserved = sum(event.prompt_tokens + event.max_output_tokens for event in queued)
    used = sum(
        event.prompt_tokens + event.output_tokens
        for event in events
        if isinstance(event, LlmRequestFinished)
    )
    assert set(statuses) == {200, 429}
    assert statuses.count(200) == len(queued)
    assert reserved <= LIMIT
    assert used <= LIMIT


async def test_a_second_process_has_no_limit_of_its_own(tmp_path: Path) -> None:
    """litellm_27736: a limit that each replica counts by itself is a multiple of it in all."""
    async with EngineEmulator(EmulatorOptions((MODEL,))).listening("127.0.0.1", 0) as port:
        stack = ThrottleStack(tmp_path / "a", f"http://127.0.0.1:{port}", budgets=(BUDGET,))
        async with stack.running():
            other = ThrottleShell(
                ThrottleSettings(kafka="127.0.0.1:1", data=tmp_path / "b"),
                lambda: MemoryLog(stack.broker),
                Telemetry(Spans("throttle", "", ""), Metrics("throttle")),
                lambda: MemoryAnswers(stack.broker),
            )
            serving = asyncio.create_task(other.serve())
            try:
                await other.serving.wait()
                async with (
                    aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"}) as client,
                    client.post(f"http://127.0.0.1:{other.port}{CHAT}", json=chat()) as response,
                ):
                    error = (await response.json())["error"]
                    assert (response.status, error["code"]) == (503, "endpoint_unavailable")
                    assert response.headers["retry-after"] == "1"
            finally:
                serving.cancel()
                await asyncio.wait([serving])
    assert not any(isinstance(event, LlmRequestQueued) for event in stack.events())
