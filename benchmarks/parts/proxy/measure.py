"""Interleaved rounds over all targets, and the figures of their medians."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.parts.percentiles import percentile
from benchmarks.parts.proxy.load import Phase, run_phase
from benchmarks.parts.proxy.site import body, session
from benchmarks.parts.proxy.target import ProxyTarget
from shared.process.progress import ReportLine

CONCURRENCIES = (1, 8, 64)
PLAIN_TOKENS, STREAM_CHUNKS = 16, 64
BODIES = {"plain": body(PLAIN_TOKENS), "stream64": body(STREAM_CHUNKS, stream=True)}
CPU_AT = 8
"""Concurrency whose CPU per request is the headline; that of the others is beside."""
WARM_S = 0.5


@dataclass(slots=True)
class LoadCell:
    """The rounds of one target, kind of request and concurrency."""

    cpu_ms: list[float] = field(default_factory=list)
    beside_ms: list[float] = field(default_factory=list)
    rps: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    failed: int = 0

    def add(self, phase: Phase, cpu_s: float, beside_s: float) -> None:
        served = max(phase.requests, 1)
        self.cpu_ms.append(1000 * cpu_s / served)
        self.beside_ms.append(1000 * beside_s / served)
        self.rps.append(phase.rps)
        self.p50_ms.append(1000 * percentile(phase.latencies_s, 0.5))
        self.p99_ms.append(1000 * percentile(phase.latencies_s, 0.99))
        self.failed += phase.failed


Cells = dict[tuple[str, str, int], LoadCell]


async def measure(
    targets: Sequence[ProxyTarget], rounds: int, phase_s: float, report_line: ReportLine
) -> Cells:
    """Measure all targets in each round, in an order that is turned by one each time."""
    cells: Cells = {}
    for number in range(rounds):
        report_line(f"round {number + 1} of {rounds}")
        turn = number % len(targets)
        for target in (*targets[turn:], *targets[:turn]):
            await _measure_target(cells, target, phase_s)
    return cells


async def _measure_target(cells: Cells, target: ProxyTarget, phase_s: float) -> None:
    async with session(target.url, target.key) as client:
        for kind, request in BODIES.items():
            await run_phase(client, request, CPU_AT, WARM_S)
            for concurrency in CONCURRENCIES:
                cpu_s, beside_s = target.cpu_s(), target.beside_cpu_s()
                phase = await run_phase(client, request, concurrency, phase_s)
                used_s, beside_used_s = target.cpu_s() - cpu_s, target.beside_cpu_s() - beside_s
                cell = cells.setdefault((target.name, kind, concurrency), LoadCell())
                cell.add(phase, used_s, beside_used_s)


def figures_of(cells: Cells, target: ProxyTarget) -> dict[str, object]:
    """Return the row of one target; latencies are added to those without a proxy, alone."""
    row: dict[str, object] = {}
    for kind in BODIES:
        own = {c: cells[target.name, kind, c] for c in CONCURRENCIES}
        alone, direct = own[1], cells["direct", kind, 1]
        row[kind] = {
            "cpu_ms_per_request": _median(own[CPU_AT].cpu_ms, 3),
            "cpu_ms_at": {str(c): _median(cell.cpu_ms, 3) for c, cell in own.items()},
            "broker_cpu_ms_per_request": _median(own[CPU_AT].beside_ms, 3),
            "rps": {str(c): _median(cell.rps, 1) for c, cell in own.items()},
            "added_p50_ms": _added(alone.p50_ms, direct.p50_ms),
            "added_p99_ms": _added(alone.p99_ms, direct.p99_ms),
            "failed": sum(cell.failed for cell in own.values()),
        }
    row["rss_mib"] = round(target.rss_mib(), 1)
    return row


def ratio_of(cells: Cells, name: str, other: str, kind: str) -> dict[str, float]:
    """Return the CPU per request of one through that of the other, round by round."""
    pairs = zip(cells[name, kind, CPU_AT].cpu_ms, cells[other, kind, CPU_AT].cpu_ms, strict=True)
    ratios = [own / others for own, others in pairs if others]
    if not ratios:
        return {"median": 0.0, "least": 0.0, "most": 0.0}
    return {
        "median": _median(ratios, 2),
        "least": round(min(ratios), 2),
        "most": round(max(ratios), 2),
    }


def _added(own_ms: Iterable[float], direct_ms: Iterable[float]) -> float:
    pairs = zip(own_ms, direct_ms, strict=True)
    return _median([own - direct for own, direct in pairs], 2)


def _median(values: Sequence[float], digits: int) -> float:
    return round(median(values), digits)
