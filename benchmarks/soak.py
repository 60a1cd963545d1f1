"""One slice of a soak: everything on for `--minutes`, over the data that the last slice left.

`--data DIR` is the installation, which slices continue; `--out DIR` writes a page over all slices.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.chaos.api_probe import ApiProbe
from benchmarks.parts.chaos.burst import waits_s
from benchmarks.parts.chaos.loaded_stack import LoadedStack, loaded_stack
from benchmarks.parts.chaos.slices import begin_slice, goals_of, read_slices, write_slices
from benchmarks.parts.chaos.soak import MemorySamples, error_lines
from benchmarks.parts.chaos.verdict import check_installation
from benchmarks.parts.command import Json, serve
from benchmarks.parts.percentiles import summarize
from benchmarks.parts.result import finish
from benchmarks.parts.soak.clients import SoakClients, prepare_clients
from benchmarks.parts.soak.load import LOAD, disturb
from benchmarks.parts.soak.page import PLOT, draw, render_page
from benchmarks.parts.stack import AWAITED, inventory, prepare, started
from cli.demo.engines import engine_ports, engine_programs
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

SAMPLE_S = 10.0
ENDS_S = 120.0
ARCHIVING = {"BERTH_ARCHIVE_EVERY_H": "0.1"}
"""Each slice archives several times."""
NODES = [f"p0-h100-0{number}" for number in range(3)]


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """The fields are the flags of the benchmark, with their defaults."""

    minutes: float = 40.0
    per_s: float = 20.0
    data: str = "build/soak"
    broker: Broker = "kafka"
    out: str = ""
    """Folder of soak.json, soak.md and the plot."""


async def run(options: SoakOptions, report_line: ReportLine) -> Json:
    """Run one more slice; return the figures of all. Raises ValueError for wrong options."""
    if options.minutes <= 0 or options.per_s <= 0:
        raise ValueError("minutes, per_s: more than 0 is needed")
    began_s = time.process_time()
    folder = Path(options.data).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    slices, number = read_slices(folder), begin_slice(folder)
    report_line(
        f"slice {number}, over {len(slices)} that ended: {options.minutes:g} min at "
        f"{options.per_s:g} jobs/s on {options.broker}, in {folder}; {LOAD}"
    )
    slices.append(await run_slice(options, folder, number, report_line))
    write_slices(folder, slices)
    result: Json = {
        "bench": "soak",
        "slices": slices,
        "goals": goals_of(slices),
        "settings": {"load": LOAD, "cut_short": number - len(slices)},
    }
    finished = finish(result, began_s, options.out, render_page)
    if options.out:
        draw(slices, Path(options.out) / PLOT)
    return finished


async def run_slice(
    options: SoakOptions, folder: Path, number: int, report_line: ReportLine
) -> dict[str, Any]:
    """Start the stack over what the last slice left, load it, and stop it again."""
    ports = engine_ports()
    stack_options = supervise.StackOptions(
        data_dir=folder / "stack",
        broker=options.broker,
        awaited=AWAITED,
        archive=str(folder / "archive") if options.broker == "kafka" else "",
        env={"executor-virtual": inventory(folder, 1), "publisher": ARCHIVING},
        beside=engine_programs(ports),
    )
    began = time.monotonic()
    async with started(stack_options, report_line) as bench:
        await prepare(bench, report_line, allow_injection=True)
        clients = await prepare_clients(bench, ports)
        start_s = round(time.monotonic() - began, 1)
        old_errors = Counter(await asyncio.to_thread(error_lines, stack_options.data_dir))
        async with loaded_stack(bench, 0.0, report_line) as loaded:
            loaded.prefix = f"soak-slice-{number}"
            figures = await under_load(options, loaded, clients)
            all_ended = await loaded.all_ended(ENDS_S)
            verdict = await check_installation(loaded, all_ended)
        lines = Counter(await asyncio.to_thread(error_lines, stack_options.data_dir))
    errors = list((lines - old_errors).elements())
    return {
        **figures,
        **clients.figures(),
        "minutes": options.minutes,
        "per_s": options.per_s,
        "broker": options.broker,
        "start_s": start_s,
        "all_ended": all_ended,
        "verify": verdict["verify"],
        "violations": verdict["violations"],
        "lines_of_errors": len(errors),
        "first_of_them": errors[:3],
    }


async def under_load(
    options: SoakOptions, loaded: LoadedStack, clients: SoakClients
) -> dict[str, Any]:
    """Run all of the load for a slice; return samples of memory and disk, and delays."""
    probe, samples, disk_mib = ApiProbe(loaded, loaded.prefix), MemorySamples(), []
    await probe.start()
    loaded.per_s = options.per_s
    running = (probe.run(), disturb(loaded, NODES), clients.run())
    beside = [asyncio.ensure_future(one) for one in running]
    began = time.monotonic()
    try:
        while (now_s := time.monotonic() - began) <= options.minutes * 60:
            samples.add(now_s, await asyncio.to_thread(loaded.bench.pss_mib))
            disk_mib.append(await asyncio.to_thread(size_mib, loaded.bench.stack.data_dir))
            loaded.report_line(f"{now_s:.0f} s: {len(loaded.ended)} jobs ended")
            for task in beside:
                if task.done():
                    task.result()
            await asyncio.sleep(SAMPLE_S)
    finally:
        loaded.ends_load.set()
        for task in beside:
            task.cancel()
        await asyncio.wait(beside)
    statuses = Counter(str(answer.status) for answer in probe.answers)
    return {
        "at_s": samples.at_s,
        "mib": samples.mib,
        "disk_mib": disk_mib,
        "jobs": len(loaded.acked),
        "delay_s": summarize(waits_s(loaded, loaded.acked)),
        "api_statuses": dict(statuses),
    }


def size_mib(folder: Path) -> float:
    """Return the disk that a folder takes; files that vanish meanwhile count nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue
    return round(total / 2**20, 1)


if __name__ == "__main__":
    serve(run, SoakOptions, __doc__ or "")
