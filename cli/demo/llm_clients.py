"""Clients of the demo's LLM endpoint: tenants that pause between requests, and an abuser."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp

from cli.demo.engines import MODEL
from cli.errors import CliError

ROUTE = "/v1/chat/completions"
RETRY_S, LOOK_S = 1.0, 0.25
TIMEOUT_S = 120.0
READY_S = 120.0


class Habit(NamedTuple):
    """The use that a tenant makes of the endpoint: requests at once, length of answers, pauses."""

    at_once: int
    max_tokens: int
    pause_s: float
    prompt_words: int


POLITE = Habit(at_once=1, max_tokens=16, pause_s=1.0, prompt_words=30)
ABUSIVE = Habit(at_once=10, max_tokens=64, pause_s=0.0, prompt_words=120)


def trust(ca: str) -> ssl.SSLContext | bool:
    """Return what aiohttp takes for TLS: this CA file alone, or the system's where it is empty."""
    return ssl.create_default_context(cafile=ca) if ca else True


@dataclass(slots=True)
class LlmClients:
    """The clients of all tenants, each with its key; they send requests until cancelled."""

    url: str
    ca: str
    keys: dict[str, str]
    habits: dict[str, Habit]
    answered: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    """Answers that are none of 200 and 429."""

    async def run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        connector = aiohttp.TCPConnector(ssl=trust(self.ca), limit=0)
        async with (
            aiohttp.ClientSession(self.url, timeout=timeout, connector=connector) as session,
            asyncio.TaskGroup() as group,
        ):
            await self._until_served(session)
            for tenant, habit in self.habits.items():
                for number in range(habit.at_once):
                    group.create_task(self._send_on(session, tenant, habit, number))

    async def _until_served(self, session: aiohttp.ClientSession) -> None:
        """Send requests until the endpoint answers. Raises CliError with the last refusal.

        They are of the last tenant, whose waits include the start of the engines.
        """
        tenant, ends_s = list(self.habits)[-1], asyncio.get_running_loop().time() + READY_S
        while await self._send(session, tenant, "hello", 1) is not None:
            if asyncio.get_running_loop().time() > ends_s:
                raise CliError(f"the LLM endpoint does not answer: {self.failures[-1]}")
            await asyncio.sleep(LOOK_S)
        self.failures.clear()

    async def _send_on(
        self, session: aiohttp.ClientSession, tenant: str, habit: Habit, number: int
    ) -> None:
        turn = 0
        while True:
            turn += 1
            prompt = f"{tenant} {number} {turn}: " + "word " * habit.prompt_words
            wait_s = await self._send(session, tenant, prompt, habit.max_tokens)
            await asyncio.sleep(habit.pause_s if wait_s is None else wait_s)

    async def _send(
        self, session: aiohttp.ClientSession, tenant: str, prompt: str, max_tokens: int
    ) -> float | None:
        """Send one request; return how long to wait before the next one if it was refused."""
        messages = [{"role": "user", "content": prompt}]
        body = {"model": MODEL, "messages": messages, "max_tokens": max_tokens, "ignore_eos": True}
        headers = {"authorization": f"Bearer {self.keys[tenant]}"}
        try:
            async with session.post(ROUTE, json=body, headers=headers) as response:
                text = await response.text()
                if response.status == 200:
                    self.answered[tenant] += 1
                    return None
                if response.status != 429:
                    self.failures.append(f"{tenant}: {response.status} {text[:200]}")
                return float(response.headers.get("retry-after", RETRY_S))
        except (aiohttp.ClientError, TimeoutError) as error:
            self.failures.append(f"{tenant}: {type(error).__name__} {error}")
            return RETRY_S
