"""Starts the four ways to the engine of one run."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from benchmarks.parts.proxy import litellm
from benchmarks.parts.proxy.site import KEY, ROOT, ProxySite, proxy_site, settings_of, until_served
from benchmarks.parts.proxy.target import ProxyTarget
from infra.machine.environments import EnvironmentMissing
from infra.machine.process import DidNotStart, Running, free_ports, is_open, spawn
from shared.process.progress import ReportLine

SAMPLE = "0.01"
APPENDING = "aiohttp_append"
"""The bare pass-through that appends each request to a ledger before the engine has it."""
LITELLM_KEY = "sk-bench-sesame"
START_S = 30.0

Missing = dict[str, str]
"""`missing`: why LiteLLM is absent; `version`: its version."""


async def started_targets(
    otlp: str,
    open_: AsyncExitStack,
    report_line: ReportLine,
    *,
    embedded: bool,
    without_litellm: bool,
) -> tuple[list[ProxyTarget], Missing]:
    """Start all ways; what is started is stopped when `open_` is closed."""
    report_line("starting the broker, the engine and the services")
    variables = {"BERTH_OTLP": otlp, "BERTH_TRACE_SAMPLE": SAMPLE}
    site = await open_.enter_async_context(proxy_site(is_durable=not embedded, variables=variables))
    await site.configure(*settings_of(site))
    throttle = site.start_throttle()
    open_.callback(throttle.stop)
    await until_served(site.url)
    broker = site.broker.pid if site.broker is not None else None
    targets = [ProxyTarget("berth", site.url, KEY, throttle.pid, broker)]
    for name in ("aiohttp", APPENDING):
        running, url = await asyncio.to_thread(_start_bare, site, appends=name == APPENDING)
        open_.callback(running.stop)
        beside = broker if name == APPENDING else None
        targets.append(ProxyTarget(name, url, KEY, running.pid, beside))
    missing: Missing = {"missing": "left out by an option"}
    if not without_litellm:
        other, missing = await _start_litellm(site, open_, report_line)
        targets += [other] if other is not None else []
    return [*targets, ProxyTarget("direct", site.engine_url, KEY)], missing


def _start_bare(site: ProxySite, *, appends: bool) -> tuple[Running, str]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "benchmarks.parts.proxy.bare", site.engine_url, str(port), KEY]
    if appends:
        command += ["--broker", site.connection.servers]
        command += ["--idempotent"] if site.connection.idempotent else []
    running = spawn("bare", command, site.folder / f"bare-{port}.log", {"PYTHONPATH": str(ROOT)})
    running.wait_ready(lambda: is_open(port), START_S)
    return running, f"http://127.0.0.1:{port}"


async def _start_litellm(
    site: ProxySite, open_: AsyncExitStack, report_line: ReportLine
) -> tuple[ProxyTarget | None, Missing]:
    report_line("starting LiteLLM, installed on first use")
    (port,) = free_ports(1)
    try:
        folder = await asyncio.to_thread(litellm.install)
        running = await asyncio.to_thread(
            litellm.start, folder, site.engine_url, port, LITELLM_KEY, site.folder
        )
        open_.callback(running.stop)
        url = f"http://127.0.0.1:{port}"
        await until_served(url, LITELLM_KEY)
    except (EnvironmentMissing, DidNotStart, TimeoutError) as error:
        return None, {"missing": str(error) or "it served no request in time"}
    return ProxyTarget("litellm", url, LITELLM_KEY, running.pid), {
        "version": litellm.version(folder)
    }
