"""A real engine behind the LLM proxy: how far two tenants drift apart, how far estimates are off.

A llama.cpp server with a model of random weights, which is fetched on first use. Two tenants with
many and with few requests always wait, under `fcfs` and under `berth`. `--embedded` uses the
embedded broker; `--quick` measures one short round; `--out DIR` writes a page.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.engine.goals import goals_of
from benchmarks.parts.engine.load import OPEN_REQUESTS, ServicePhase, run_phase
from benchmarks.parts.engine.page import write_files
from benchmarks.parts.engine.waits import quantiles, wait_ratios
from benchmarks.parts.proxy.kills import read_settled
from benchmarks.parts.proxy.site import (
    LANE,
    MODEL,
    READY_S,
    SECRET,
    ProxySite,
    proxy_site,
    session,
    until_served,
)
from infra.llama import server
from infra.llama.packages import LlamaMissing
from infra.machine.process import Running
from shared.bus.logs.tail import LedgerTail
from shared.contracts.access import CreateKey, RegisterTenant
from shared.contracts.base import Command, Event
from shared.contracts.endpoints import ConfigureEndpoint, EndpointConfigured, Upstream
from shared.contracts.pools import ConfigurePool
from shared.process.progress import ReportLine

SLOTS = 4
DISCIPLINES = ("fcfs", "berth")
PHASE_S, QUICK_PHASE_S, WARM_S = 25.0, 4.0, 6.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    rounds: int = 2
    embedded: bool = False
    quick: bool = False
    out: str = ""


async def run(options: EngineOptions, report_line: ReportLine) -> Json:
    """Return a row for each discipline, and `goals`. Raises ValueError without an engine."""
    rounds = 1 if options.quick else options.rounds
    phase_s = QUICK_PHASE_S if options.quick else PHASE_S
    phases: dict[str, list[ServicePhase]] = {name: [] for name in DISCIPLINES}
    report_line("starting the engine, fetched on first use, the broker and the services")
    try:
        async with proxy_site(is_durable=not options.embedded, start_engine=_llama) as site:
            ratios = wait_ratios(await _measure(site, phases, rounds, phase_s, report_line))
    except LlamaMissing as missing:
        raise ValueError(str(missing)) from None
    result: dict[str, Any] = {
        "bench": "engine",
        "slots": SLOTS,
        "rounds": rounds,
        "phase_s": phase_s,
        "cores": os.cpu_count(),
        **{name: row_of(phases[name], ratios.get(name, ())) for name in DISCIPLINES},
    }
    result["goals"] = goals_of(result)
    if options.out:
        write_files(Path(options.out), result)
    return result


async def _measure(
    site: ProxySite,
    phases: dict[str, list[ServicePhase]],
    rounds: int,
    phase_s: float,
    report_line: ReportLine,
) -> list[Event]:
    """Run the phases; return the events of the ledger, once the requests of all have ended."""
    await site.configure(*tenants(), endpoint_of(site, DISCIPLINES[0]))
    throttle = site.start_throttle()
    async with AsyncExitStack() as stack:
        stack.callback(throttle.stop)
        await until_served(site.url, key_of("many"))
        clients = {
            name: await stack.enter_async_context(session(site.url, key_of(name)))
            for name in OPEN_REQUESTS
        }
        await run_phase(clients, "warm", WARM_S, 0)
        for number in range(rounds):
            for name in DISCIPLINES:
                report_line(f"round {number + 1} of {rounds}: {name}")
                await site.configure(endpoint_of(site, name))
                await until_configured(site, name)
                phases[name].append(await run_phase(clients, name, phase_s, number + 1))
        return await read_settled(site)


async def until_configured(site: ProxySite, discipline: str) -> None:
    """Wait until the lane orders by the discipline: waits are estimated by it from then on.

    Raises TimeoutError.
    """
    tail = LedgerTail(site.log(), {"throttle": [LANE]})
    await tail.start()
    latest = ""
    try:
        async with asyncio.timeout(READY_S):
            while latest != discipline or not tail.caught_up:
                for accepted in await tail.poll(0.1):
                    for fact in accepted.facts():
                        if isinstance(fact.event, EndpointConfigured):
                            latest = fact.event.discipline
    finally:
        await tail.stop()


def row_of(phases: Sequence[ServicePhase], ratios: Sequence[float]) -> dict[str, Any]:
    """Return the figures of one discipline over its rounds."""
    many, few = (sum(phase.service[name] for phase in phases) for name in OPEN_REQUESTS)
    wall_s = sum(phase.wall_s for phase in phases)
    tokens = sum(sum(phase.tokens.values()) for phase in phases)
    return {
        "max_gap": round(mean(phase.max_gap for phase in phases)),
        "share": f"{many / max(few, 1):.2f}",
        "tokens_per_s": round(tokens / max(wall_s, 1e-9)),
        "failed": sum(phase.failed for phase in phases),
        "wait_ratio": quantiles(ratios),
    }


def _llama(folder: Path) -> tuple[Running, str]:
    started = server.start(folder, SLOTS)
    return started.running, started.url


def key_of(tenant: str) -> str:
    return f"{tenant}-key.{SECRET}"


def tenants() -> list[Command]:
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    commands: list[Command] = [ConfigurePool(pool="main")]
    for name in OPEN_REQUESTS:
        commands += [
            RegisterTenant(tenant=name, default_pool="main"),
            CreateKey(key_id=f"{name}-key", sha256=digest, role="submitter", tenant=name),
        ]
    return commands


def endpoint_of(site: ProxySite, discipline: str) -> Command:
    upstream = Upstream(name="llama", url=site.engine_url, max_requests=SLOTS)
    settings = {"endpoint": MODEL, "upstreams": (upstream,), "discipline": discipline}
    return ConfigureEndpoint.model_validate(settings)


if __name__ == "__main__":
    serve(run, EngineOptions, __doc__ or "")
