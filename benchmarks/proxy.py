"""Overhead of the LLM proxy, beside LiteLLM, a bare pass-through of aiohttp, and no proxy.

A second pass-through appends durably before each request: the floor of what the proxy promises.

The throttle service runs as a process on Kafka (`--embedded`: on the embedded broker) before an
emulated engine that computes nothing. `--kills N` also ends it N times under load by `kill -9` and
compares its ledger with the engine's counters. `--quick` measures one short round; `--out DIR`
writes a page.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.command import Json, serve
from benchmarks.parts.otlp_sink import otlp_sink
from benchmarks.parts.proxy.goals import KINDS, goals_of
from benchmarks.parts.proxy.measure import figures_of, measure, ratio_of
from benchmarks.parts.proxy.page import write_files
from benchmarks.parts.proxy.targets import Missing, started_targets
from shared.process.progress import ReportLine

PHASE_S, QUICK_PHASE_S = 3.0, 0.5
PAIRS = {
    "aiohttp": ("berth", "aiohttp"),
    "aiohttp_append": ("berth", "aiohttp_append"),
    "floor": ("aiohttp_append", "aiohttp"),
    "litellm": ("litellm", "berth"),
}
"""Ratios of CPU: that of the first way over that of the second."""


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    rounds: int = 5
    embedded: bool = False
    without_litellm: bool = False
    kills: int = 0
    quick: bool = False
    out: str = ""


async def run(options: ProxyOptions, report_line: ReportLine) -> Json:
    """Return a row for each way to the engine, the ratios of their CPU, and `goals`."""
    rounds = 1 if options.quick else options.rounds
    result: dict[str, Any] = {
        "bench": "proxy",
        "rounds": rounds,
        "cores": os.cpu_count(),
        "broker": "embedded" if options.embedded else "kafka",
    }
    async with AsyncExitStack() as open_:
        url = open_.enter_context(ExitStack()).enter_context(otlp_sink())
        targets, missing = await started_targets(
            url,
            open_,
            report_line,
            embedded=options.embedded,
            without_litellm=options.without_litellm,
        )
        phase_s = QUICK_PHASE_S if options.quick else PHASE_S
        cells = await measure(targets, rounds, phase_s, report_line)
        result |= {target.name: figures_of(cells, target) for target in targets}
    result |= _about_litellm(missing)
    result["ratios"] = {
        name: {kind: ratio_of(cells, *pair, kind) for kind in KINDS}
        for name, pair in PAIRS.items()
        if pair[0] in result and pair[1] in result
    }
    if not options.quick:
        from benchmarks.parts.proxy.loop_lag import loop_lag

        result["loop_lag"] = await loop_lag(not options.embedded, report_line)
        from benchmarks.parts.proxy.promptness import promptness

        result["promptness"] = await promptness(not options.embedded, report_line)
    if options.kills:
        from benchmarks.parts.proxy.kills import kill_often

        result["kills"] = await kill_often(options.kills, not options.embedded, report_line)
    result["goals"] = goals_of(result)
    if options.out:
        write_files(Path(options.out), result)
    return result


def _about_litellm(missing: Missing) -> dict[str, str]:
    return {f"litellm_{name}": text for name, text in missing.items() if text}


if __name__ == "__main__":
    serve(run, ProxyOptions, __doc__ or "")
