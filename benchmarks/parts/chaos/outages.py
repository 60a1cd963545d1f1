"""Outages of the broker, of Postgres and of the projector."""

from __future__ import annotations

import asyncio
import signal
import time

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from shared.projections import cursor
from shared.projections.database import connect

RESUME_LIMIT_S = 60.0
OBSERVED_LEDGERS = ("admission", "placement")
"""Ledgers whose next records show that work has resumed."""


async def broker(options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """SIGKILL the broker; measure the seconds from its open port to the next decisions."""
    data_dir = loaded.bench.stack.data_dir
    times_s = []
    before = await faults.pids(data_dir)
    for _ in range(options.broker_kills):
        await faults.send_signal(data_dir, "broker", signal.SIGKILL)
        await asyncio.sleep(0.5)
        await faults.wait_until(loaded.broker_is_open, RESUME_LIMIT_S)
        times_s.append(await resume_s(loaded))
        await asyncio.sleep(2.0)
    after = await faults.pids(data_dir)
    return {
        "kills": options.broker_kills,
        "resume_s": summarize(times_s),
        "services_restarted": sorted(name for name in after if after[name] != before[name]),
    }


async def away(_options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """Pause the broker for a minute; no service may end because of it."""
    data_dir = loaded.bench.stack.data_dir
    before = await faults.pids(data_dir)
    with faults.paused(await faults.pid_of(data_dir, "broker")):
        await asyncio.sleep(60.0)
    resumed_s = await resume_s(loaded)
    after = await faults.pids(data_dir)
    return {
        "away_s": 60,
        "resume_s": round(resumed_s, 2),
        "services_restarted": sorted(name for name in after if after[name] != before[name]),
    }


async def resume_s(loaded: LoadedStack) -> float:
    """Return the seconds from now to the next record of each observed ledger."""
    since = time.time()
    await asyncio.gather(*(loaded.wait_for_decision(name, since) for name in OBSERVED_LEDGERS))
    return time.time() - since


async def postgres(options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """SIGQUIT Postgres, which ends without a checkpoint; measure until the read models advance."""
    times_s = []
    for _ in range(options.postgres_kills):
        await faults.send_signal(loaded.bench.stack.data_dir, "postgres", signal.SIGQUIT)
        await asyncio.sleep(0.5)
        before = await read_cursors(loaded)
        began = time.time()
        while await read_cursors(loaded) == before and time.time() - began < RESUME_LIMIT_S:
            await asyncio.sleep(0.1)
        times_s.append(time.time() - began)
        await asyncio.sleep(2.0)
    return {"kills": options.postgres_kills, "resume_s": summarize(times_s)}


async def read_cursors(loaded: LoadedStack) -> object:
    """Return the cursors of the read models, as soon as Postgres answers."""
    ends = time.time() + RESUME_LIMIT_S
    while True:
        try:
            conn = await connect(loaded.bench.stack.postgres)
            try:
                return await cursor.read(conn)
            finally:
                await conn.close()
        except Exception:
            if time.time() > ends:
                raise
            await asyncio.sleep(0.1)


async def slow(options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """Pause the projector under load; measure memory growth and the speed of the catch-up."""
    memory_mib = loaded.bench.pss_mib()
    with faults.paused(await faults.pid_of(loaded.bench.stack.data_dir, "projector")):
        await asyncio.sleep(options.slow_s)
        behind = loaded.last_record_at.get("placement", 0.0)
    began = time.time()
    conn = await connect(loaded.bench.stack.postgres)
    try:
        while await projected_at_ms(conn) < behind * 1000 and time.time() - began < RESUME_LIMIT_S:
            await asyncio.sleep(0.05)
    finally:
        await conn.close()
    catch_up_s = max(time.time() - began, 0.01)
    growth_mib = {
        name: round(now - memory_mib.get(name, now), 1)
        for name, now in loaded.bench.pss_mib().items()
    }
    return {
        "paused_s": options.slow_s,
        "catch_up_s": round(catch_up_s, 2),
        "catch_up_over_live_rate": round(options.slow_s / catch_up_s, 1),
        "largest_growth_mib": max(
            (growth for name, growth in growth_mib.items() if name != "broker"), default=0.0
        ),
    }


async def projected_at_ms(conn: object) -> int:
    """Return the time of the last record of placement that the read models contain, ms."""
    cursors = await cursor.read(conn)
    return max((c.at for (ledger, _), c in cursors.items() if ledger == "placement"), default=0)
