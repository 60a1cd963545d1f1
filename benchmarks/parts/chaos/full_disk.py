"""A small disk under the broker or under Postgres that fills up and is freed again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Literal

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.api_probe import ApiProbe
from benchmarks.parts.chaos.loaded_stack import LoadedStack, loaded_stack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.verdict import check_installation
from benchmarks.parts.command import Json
from benchmarks.parts.stack import AWAITED, Bench, prepare, started
from infra.machine.owned_folders import scratch_folder
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from shared.process.progress import ReportLine

Server = Literal["kafka", "postgres"]

SERVERS: tuple[Server, ...] = ("kafka", "postgres")
SIZE_MIB = {"kafka": 256, "postgres": 512}
FULL_S = 20.0


async def disk_full(options: ChaosOptions, report_line: ReportLine, server: Server) -> Json:
    """Fill the disk of the server in a stack of its own; then `verify`."""
    if reason := unsupported_reason():
        return {"skipped": reason}
    async with (
        small_disk_stack(options.broker, server, report_line) as (bench, folder),
        loaded_stack(bench, options.per_s, report_line) as loaded,
    ):
        await faults.wait_until(lambda: len(loaded.ended) > 5, 60.0)
        figures = await fill_and_free(loaded, folder, server)
        loaded.ends_load.set()
        end = await check_installation(loaded, await loaded.all_ended(120.0))
    names = ("jobs_acknowledged", "all_ended", "verify", "violations")
    return figures | {name: end[name] for name in names}


def unsupported_reason() -> str:
    """Return why this machine cannot mount a file system; empty if it can."""
    return "" if os.geteuid() == 0 else "only root may mount a small file system"


@asynccontextmanager
async def small_disk_stack(
    broker: Broker, server: Server, report_line: ReportLine
) -> AsyncIterator[tuple[Bench, Path]]:
    """Run a stack as `bench_stack` does, with the data of one server on a small disk."""
    with scratch_folder("disk") as folder:
        disk = folder / broker / server
        with mounted(disk, SIZE_MIB[server]):
            options = supervise.StackOptions(data_dir=folder, broker=broker, awaited=AWAITED)
            async with started(options, report_line) as bench:
                await prepare(bench, report_line)
                yield bench, disk


@contextmanager
def mounted(folder: Path, size_mib: int) -> Iterator[None]:
    """Mount a tmpfs of that size on a new folder until the block ends."""
    folder.mkdir(parents=True)
    option = f"size={size_mib}m,mode=0755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


async def fill_and_free(loaded: LoadedStack, disk: Path, server: Server) -> Json:
    """Fill the disk for `FULL_S`; return the API's answers and the times to recovery."""
    kind, good = ("submit", 202) if server == "kafka" else ("read", 200)
    probe = ApiProbe(loaded)
    await probe.start()
    probing = asyncio.ensure_future(probe.run())
    try:
        await asyncio.sleep(5.0)
        full = time.time()
        with faults.filled_disk(disk) as taken:
            await asyncio.sleep(FULL_S)
        freed = time.time()
        await faults.wait_until(lambda: probe.first_s(kind, good, freed) is not None, 120.0)
        await loaded.wait_for_decision("placement", freed)
        decided_s = time.time() - freed
        await asyncio.sleep(3.0)
    finally:
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
    loaded.acked |= dict.fromkeys(probe.acked, time.time())
    return {
        "filled_mib": round(taken / 2**20),
        "full_s": FULL_S,
        "first_503_after_s": probe.first_s(kind, 503, full),
        "answers_to_submits_while_full": probe.count_statuses("submit", full, freed),
        "answers_to_reads_while_full": probe.count_statuses("read", full, freed),
        "good_again_after_s": probe.first_s(kind, good, freed),
        "next_decision_after_s": round(decided_s, 2),
        "acknowledged_by_the_api": len(probe.acked),
    }
