"""`kill -9` of the throttle process under load, and what its ledger says afterwards."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count

import aiohttp

from benchmarks.parts.proxy.accounts import accounts_of, compare
from benchmarks.parts.proxy.recorder import EngineRecorder
from benchmarks.parts.proxy.site import (
    LANE,
    ProxySite,
    body,
    proxy_site,
    session,
    settings_of,
    until_served,
)
from infra.machine.process import free_ports
from shared.bus.logs.tail import LedgerTail
from shared.contracts.base import Event
from shared.contracts.endpoints import TokenBudget
from shared.process.progress import ReportLine

CLIENTS = 12
TOKENS = 80
SPEED = 5.0
"""Of the engine: an answer takes a few tenths of a second."""
BUDGET_TOKENS = 15_000
"""Of the tenant for each kill, so that the load after the last one spends what is left."""
LOAD_S = (0.3, 1.5)
"""Least and longest load before a kill."""
SETTLED_S = 60.0
SPENT_S = 60.0
MUST_BE_ZERO = (
    "unreserved",
    "charged_unequal",
    "lost_above_reservation",
    "lost_below_made",
    "left_open",
    "sent_twice",
    "tokens_above_budget",
)


async def kill_often(kills: int, is_durable: bool, report_line: ReportLine) -> dict[str, int]:
    """Return the counts of `compare` and those of the budget, after so many kills."""
    async with proxy_site(is_durable=is_durable, speed=SPEED) as site:
        recorder = EngineRecorder(site.engine_url)
        (port,) = free_ports(1)
        async with recorder.listening(port):
            front = replace(site, engine_url=f"http://127.0.0.1:{port}")
            limit = BUDGET_TOKENS * kills
            budget = TokenBudget(holder="tenant", unit="tokens", limit=limit, memory="forever")
            await front.configure(*settings_of(front, budgets=(budget,)))
            await _kill_under_load(front, kills, report_line)
            events = await read_settled(front)
    accounts, most = accounts_of(events)
    return {
        "kills": kills,
        **compare(accounts, recorder.seen),
        "sent_twice": recorder.twice,
        "budget_tokens": limit,
        "most_tokens": most,
        "tokens_above_budget": max(0, most - limit),
    }


async def _kill_under_load(site: ProxySite, kills: int, report_line: ReportLine) -> None:
    """Kill and start again; then spend what is left of the budget, and stop."""
    draw = random.Random(1)
    numbers = count()
    throttle = site.start_throttle()
    spent = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        clients = [tasks.create_task(_send(site, numbers, spent)) for _ in range(CLIENTS)]
        try:
            for number in range(kills):
                await until_served(site.url)
                await asyncio.sleep(draw.uniform(*LOAD_S))
                report_line(f"kill {number + 1} of {kills}")
                throttle.kill()
                throttle = site.start_throttle()
            await until_served(site.url)
            with suppress(TimeoutError):
                async with asyncio.timeout(SPENT_S):
                    await spent.wait()
            spent.set()
            await read_settled(site)
        finally:
            for client in clients:
                client.cancel()
            throttle.stop()


async def _send(site: ProxySite, numbers: count[int], spent: asyncio.Event) -> None:
    """Send one request after the other, each with a user of its own, until cancelled."""
    async with session(site.url) as client:
        while not spent.is_set():
            request = {**body(TOKENS, stream=True), "user": f"u{next(numbers)}"}
            del request["ignore_eos"]
            if await _is_refused(client, request):
                spent.set()


async def _is_refused(client: aiohttp.ClientSession, request: Mapping[str, object]) -> bool:
    """Send a request and read its answer; returns whether the budget refuses it."""
    try:
        async with client.post("/v1/chat/completions", json=request) as answer:
            text = await answer.read()
            return answer.status == 429 and b"tenant_tokens" in text
    except aiohttp.ClientError:
        await asyncio.sleep(0.05)
        return False


async def read_settled(site: ProxySite) -> list[Event]:
    """Return the events of the ledger, once no request is open. Raises TimeoutError."""
    tail = LedgerTail(site.log(), {"throttle": [LANE]})
    await tail.start()
    events: list[Event] = []
    try:
        async with asyncio.timeout(SETTLED_S):
            while True:
                for accepted in await tail.poll(0.2):
                    events += [fact.event for fact in accepted.facts()]
                accounts, _ = accounts_of(events)
                if tail.caught_up and not any(account.is_open for account in accounts.values()):
                    return events
    finally:
        await tail.stop()
