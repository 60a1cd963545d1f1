"""Everything dies, once and many times, on real parts; then `verify` reads it all."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.parts import disk, faults
from benchmarks.parts.chaos_record import Kept, checked
from benchmarks.parts.command import serve
from benchmarks.parts.crowd import crowd
from benchmarks.parts.disk import Under
from benchmarks.parts.killing import Toll, kill_all, spread
from benchmarks.parts.scene import Scene, scene
from benchmarks.parts.soak import soak
from benchmarks.parts.stack import LANE, bench_stack
from benchmarks.parts.stalls import stalls
from infra.supervisor import supervise
from infra.supervisor.running import Broker
from infra.supervisor.stack import SERVICES
from shared.bus.tail import LedgerTail
from shared.ledger.partition import TP
from shared.projections import cursor
from shared.projections.database import connect
from shared.verify.reading import InstallationLog
from shared.verify.run import VerifyReport, verify

Say = Callable[[str], None]
Json = dict[str, object]
Part = Callable[["ChaosOptions", Scene, "Kept"], Awaitable[Json]]

NEXT_S = 60.0
UNDER: tuple[Under, ...] = ("kafka", "postgres")
RUNBOOK = "see docs/operations/"
TELL_EVERY_S = 30.0
FLOOD_AT_ONCE = 500
SLOWEST_PER_S = 500
"""Malformed records are waited for as long as if so few were dealt with."""


@dataclass(frozen=True, slots=True)
class ChaosOptions:
    broker: Broker = "kafka"
    jobs: int = 2000
    """At least, where `kills` is among the parts; the load ends with the last part."""
    per_s: float = 12.0
    pools: int = 1
    """The jobs take turns; at most three, the fourth lane is that of real processes."""
    kills: int = 3
    """Of each service."""
    alone: int = 3
    """Kills of each service in `recovery`, where nothing else happens."""
    killers: int = 1
    """So many kills may be under way at once, of different services."""
    minutes: float = 45.0
    """The kills and their load end then, whatever was reached."""
    zombies: int = 100
    broker_kills: int = 3
    postgres_kills: int = 3
    slow_s: float = 20.0
    soak_minutes: float = 1.0
    malformed: int = 20_000
    malformed_per_s: float = 2000.0
    crowd: int = 30_000
    """Jobs that one tenant publishes at once."""
    lost_share: float = 0.5
    """Of placement's ledger in `lost_tail`; 1 wipes it."""
    only: str = ""
    """Parts by name, with commas between; empty: all."""
    seed: int = 1
    simulation: str = ""
    """File of `python -m tests.chaos`, to be shown with the rest."""
    checks: str = ""
    """JUnit report of the tests that are shown with the rest."""
    out: str = ""
    """Folder of chaos.json and chaos.md, where the parts that this run makes are replaced."""


async def run(options: ChaosOptions, say: Say) -> Json:
    """Figures of each part, and what verify said of all that was left behind."""
    wanted = parts_of(options)
    kept = Kept(Path(options.out) if options.out else None, command_of(options), told(options))
    if options.simulation:
        kept.all["simulation"] = json.loads(Path(options.simulation).read_text())
    if options.checks:
        kept.all["checks"] |= checked(Path(options.checks))
    if set(wanted) - {f"disk_{under}" for under in UNDER}:
        await on_one_stack(options, wanted, kept, say)
    for under in UNDER:
        if f"disk_{under}" in wanted:
            figures = await disk_full(options, under, say)
            kept.note(f"disk_{under}", figures)
            say(f"disk_{under}: {json.dumps(figures)}")
    kept.save()
    return kept.all


def parts_of(options: ChaosOptions) -> list[str]:
    """In their order; raises ValueError for a name that is none."""
    known = [*PARTS, *(f"disk_{under}" for under in UNDER)]
    wanted = options.only.split(",") if options.only else known
    if unknown := set(wanted) - {*known, "none"}:
        raise ValueError(f"only={','.join(sorted(unknown))}: parts are {', '.join(known)}, none")
    return [name for name in known if name in wanted]


def told(options: ChaosOptions) -> Json:
    """The settings that say how much was done."""
    names = ("out", "simulation", "checks", "only")
    return {name: getattr(options, name) for name in ChaosOptions.__slots__ if name not in names}


def command_of(options: ChaosOptions) -> str:
    """What to type for the same again."""
    plain = ChaosOptions()
    flags = [
        f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
        for name in ChaosOptions.__slots__
        if name not in ("out", "simulation", "checks")
        and (value := getattr(options, name)) != getattr(plain, name)
    ]
    return " ".join(["berth bench chaos", *flags])


async def on_one_stack(options: ChaosOptions, wanted: list[str], kept: Kept, say: Say) -> None:
    async with (
        bench_stack(options.broker, say, pools=options.pools) as bench,
        scene(bench, options.per_s, say, options.pools) as made,
        telling(made, say),
    ):
        await faults.until(lambda: len(made.ended) > 5, NEXT_S)
        for name in (name for name in wanted if name in PARTS and name != "lost_tail"):
            say(f"{name}: begins with {len(made.ended)} jobs ended")
            kept.note(name, figures := await PARTS[name](options, made, kept))
            say(f"{name}: {json.dumps(figures)}")
        made.ends_load.set()
        say(f"waiting for {made.outstanding} jobs to end")
        kept.judged(await judged(made, await made.all_ended(300.0)))
        if "lost_tail" in wanted:
            kept.note("lost_tail", figures := await lost_tail(options, made))
            say(f"lost_tail: {json.dumps(figures)}")


@asynccontextmanager
async def telling(made: Scene, say: Say) -> AsyncIterator[None]:
    """Now and then a line of how far it is."""
    began = time.monotonic()

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_S)
            say(
                f"{time.monotonic() - began:.0f} s: {len(made.acked)} jobs acknowledged, "
                f"{len(made.ended)} ended, {made.outstanding} under way{made.progress()}, "
                f"load {os.getloadavg()[0]:.1f}"
            )

    task = asyncio.ensure_future(tell())
    try:
        yield
    finally:
        task.cancel()


async def disk_full(options: ChaosOptions, under: Under, say: Say) -> Json:
    """Its own stack, with the broker or Postgres on a disk that fills up; then `verify`."""
    if why := disk.missing():
        return {"skipped": why}
    async with (
        disk.small_stack(options.broker, under, say) as (bench, folder),
        scene(bench, options.per_s, say) as made,
    ):
        await faults.until(lambda: len(made.ended) > 5, NEXT_S)
        figures = await disk.filled(made, folder, under)
        made.ends_load.set()
        end = await judged(made, await made.all_ended(120.0))
    names = ("jobs_acknowledged", "all_ended", "verify", "violations")
    return figures | {name: end[name] for name in names}


async def judged(made: Scene, all_ended: bool) -> Json:
    """`verify` over every ledger, the read models and what was acknowledged."""
    began = time.monotonic()
    conn = await connect(made.bench.stack.postgres)
    try:
        await settled(conn)
        logs = InstallationLog(made.bench.log(), made.bench.stack.partitions, catch_up_s=60.0)
        report: VerifyReport = await verify(logs, conn, made.say, acked=list(made.acked))
    finally:
        await conn.close()
    return {
        "jobs_acknowledged": len(made.acked),
        "jobs_ended": len(made.acked.keys() & made.ended),
        "all_ended": all_ended,
        "verify": "ok" if report.ok else "failed",
        "violations": [str(violation) for violation in report.violations[:20]],
        "rules": report.rules,
        "counts": dict(report.counts),
        "judged_in_s": round(time.monotonic() - began),
    }


async def settled(conn: object) -> None:
    for _ in range(100):
        before = await cursor.read(conn)
        await asyncio.sleep(0.5)
        if await cursor.read(conn) == before:
            return


# ---- processes ---------------------------------------------------------------------------------


async def kills(options: ChaosOptions, made: Scene, kept: Kept) -> Json:
    """SIGKILL of each service, in a random order, so often; then the load runs on to `jobs`."""
    toll = Toll(options.kills, options.killers)
    ends = time.monotonic() + options.minutes * 60

    def figures() -> Json:
        reached = {"jobs": len(made.acked), "wanted_jobs": options.jobs}
        return toll.figures() | reached

    def progress() -> str:
        kept.note("kills", figures())
        return f", {toll.kills} of {options.kills * len(SERVICES)} kills"

    made.progress = progress
    try:
        await kill_all(made, toll, options.seed, ends)
        found = figures()
        while len(made.acked) < options.jobs and time.monotonic() < ends:
            await asyncio.sleep(0.5)
    finally:
        made.progress = str
    return found | {"jobs": len(made.acked)}


async def recovery(options: ChaosOptions, made: Scene, kept: Kept) -> Json:
    """As `kills`, one service at a time and no more load than runs anyway: how long it takes."""
    toll = Toll(options.alone, 1)

    def progress() -> str:
        kept.note("recovery", toll.figures())
        return f", {toll.kills} of {options.alone * len(SERVICES)} kills"

    made.progress = progress
    try:
        await kill_all(made, toll, options.seed, time.monotonic() + options.minutes * 60)
    finally:
        made.progress = str
    return toll.figures()


async def stall(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """Nothing is done to anybody: what the load alone does to the loops of the services."""
    return await stalls(made.bench, options.slow_s)


async def zombies(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """Two copies of placement, each paused in turn while the other decides."""
    data_dir, before = made.bench.stack.data_dir, await ignored(made)
    pid = await faults.pid_of(data_dir, "placement")
    long = 0
    with faults.rival(data_dir, "placement", made.bench.stack.partitions) as other:
        ready = data_dir / "rival-placement" / "placement.ready"
        works = await faults.until(ready.exists, NEXT_S) is not None
        for number in range(options.zombies):
            victim = pid if number % 2 else other.pid
            is_long = number % 25 == 24
            long += is_long
            with faults.paused(victim):
                await asyncio.sleep(8.0 if is_long else 0.5)
            await asyncio.sleep(0.2)
        alive = psutil.pid_exists(pid) and other.process.poll() is None
    since = time.time()
    await made.decides_after("placement", since, NEXT_S)
    after = await ignored(made)
    return {
        "zombies": options.zombies,
        "paused_beyond_the_session": long,
        "records_ignored": after["ignored"] - before["ignored"],
        "writers_accepted": after["writers"],
        "rival_worked": works,
        "both_lived": alive,
    }


async def ignored(made: Scene) -> dict[str, int]:
    """Of placement's ledger: records that the reader rule ignored, and who wrote the others."""
    tail = LedgerTail(made.bench.log("ignored"), {"placement": [LANE]})
    await tail.start()
    writers: set[str] = set()
    try:
        while not tail.caught_up:
            writers |= {accepted.record.w for accepted in await tail.poll(0.5)}
        return {"ignored": tail.ignored, "writers": len(writers)}
    finally:
        await tail.stop()


# ---- parts -------------------------------------------------------------------------------------


async def broker(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """SIGKILL of the broker; seconds from its open port to the next decisions."""
    times = []
    restarts = await faults.pids(made.bench.stack.data_dir)
    for _ in range(options.broker_kills):
        await faults.signal_to(made.bench.stack.data_dir, "broker", signal.SIGKILL)
        await asyncio.sleep(0.5)
        await faults.until(made.broker_is_open, NEXT_S)
        opened = time.time()
        await asyncio.gather(
            *(made.decides_after(name, opened) for name in ("admission", "placement"))
        )
        times.append(time.time() - opened)
        await asyncio.sleep(2.0)
    again = await faults.pids(made.bench.stack.data_dir)
    return {
        "kills": options.broker_kills,
        "resume_s": spread(times),
        "services_restarted": sorted(name for name in again if again[name] != restarts[name]),
    }


async def away(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """The broker is away for a minute; nobody may die of it, or write more than a few lines."""
    data_dir = made.bench.stack.data_dir
    before = await faults.pids(data_dir)
    pid = await faults.pid_of(data_dir, "broker")
    with faults.paused(pid):
        await asyncio.sleep(60.0)
    opened = time.time()
    await asyncio.gather(*(made.decides_after(name, opened) for name in ("admission", "placement")))
    resumed_s = time.time() - opened
    after = await faults.pids(data_dir)
    return {
        "away_s": 60,
        "resume_s": round(resumed_s, 2),
        "services_restarted": sorted(name for name in after if after[name] != before[name]),
    }


async def postgres(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """SIGQUIT of Postgres, which ends without a checkpoint; until the read models move again."""
    times = []
    for _ in range(options.postgres_kills):
        await faults.signal_to(made.bench.stack.data_dir, "postgres", signal.SIGQUIT)
        await asyncio.sleep(0.5)
        before = await cursors(made)
        opened = time.time()
        while await cursors(made) == before and time.time() - opened < NEXT_S:
            await asyncio.sleep(0.1)
        times.append(time.time() - opened)
        await asyncio.sleep(2.0)
    return {"kills": options.postgres_kills, "resume_s": spread(times)}


async def cursors(made: Scene) -> object:
    """Once Postgres answers."""
    ends = time.time() + NEXT_S
    while True:
        try:
            conn = await connect(made.bench.stack.postgres)
            try:
                return await cursor.read(conn)
            finally:
                await conn.close()
        except Exception:
            if time.time() > ends:
                raise
            await asyncio.sleep(0.1)


async def slow(options: ChaosOptions, made: Scene, _kept: Kept) -> Json:
    """The projector is paused under load: memory of all, and how fast it catches up."""
    data_dir = made.bench.stack.data_dir
    before = made.bench.pss_mib()
    pid = await faults.pid_of(data_dir, "projector")
    with faults.paused(pid):
        await asyncio.sleep(options.slow_s)
        behind = made.said.get("placement", 0.0)
    began = time.time()
    conn = await connect(made.bench.stack.postgres)
    try:
        while await reached(conn) < behind * 1000 and time.time() - began < NEXT_S:
            await asyncio.sleep(0.05)
    finally:
        await conn.close()
    took_s = max(time.time() - began, 0.01)
    after = made.bench.pss_mib()
    growth = {name: round(after[name] - before.get(name, after[name]), 1) for name in after}
    return {
        "paused_s": options.slow_s,
        "catch_up_s": round(took_s, 2),
        "catch_up_over_live_rate": round(options.slow_s / took_s, 1),
        "largest_growth_mib": max((g for n, g in growth.items() if n != "broker"), default=0.0),
    }


async def reached(conn: object) -> int:
    """Time of the last record of placement that the rows contain, ms."""
    found = await cursor.read(conn)
    return max((c.at for (name, _), c in found.items() if name == "placement"), default=0)


async def soaked(options: ChaosOptions, made: Scene, kept: Kept) -> Json:
    """Nothing is done to anybody for a long while: whose memory grows, who complains, who ends."""

    def note(figures: Json) -> None:
        kept.note("soak", {"per_s": options.per_s} | figures)
        made.progress = lambda: f", worst growth {figures['worst_growth_mib_per_h']} MiB/h"

    try:
        return {"per_s": options.per_s} | await soak(made.bench, options.soak_minutes, note)
    finally:
        made.progress = str


async def flood(options: ChaosOptions, made: Scene, kept: Kept) -> Json:
    """Records that nobody can read, with good jobs between them, among the commands."""
    chance, tp = random.Random(options.seed), TP("commands", LANE)
    rows, began, used = await dead_rows(made), time.time(), sum(made.bench.cpu_s().values())
    names: list[str] = []
    sent = 0

    def figures(dead: int) -> Json:
        waits = [made.placed[n] - made.acked[n] for n in names if n in made.placed]
        return {
            "malformed": sent,
            "wanted": options.malformed,
            "dead_letters": dead,
            "good_ones_behind": len(names),
            "good_ones_delayed_s": spread(waits),
        }

    made.progress = lambda: f", {sent} malformed"
    while sent < options.malformed:
        many = min(FLOOD_AT_ONCE, options.malformed - sent)
        await asyncio.gather(*(made.put(tp, faults.malformed(chance)) for _ in range(many)))
        sent += many
        names.append(made.submit(f"behind-{sent}"))
        await asyncio.sleep(max(0.0, began + sent / options.malformed_per_s - time.time()))
    sent_s = time.time() - began
    ends = time.time() + 120.0 + options.malformed / SLOWEST_PER_S
    await faults.until(lambda: made.placed.keys() >= set(names), ends - time.time())
    while (dead := await dead_rows(made) - rows) < options.malformed and time.time() < ends:
        kept.note("flood", figures(dead))
        await asyncio.sleep(1.0)
    made.progress = str
    return figures(dead) | {
        "sent_in_s": round(sent_s, 1),
        "all_in_read_models_after_s": round(time.time() - began, 1),
        "cpu_s_of_the_stack": round(sum(made.bench.cpu_s().values()) - used, 1),
    }


async def dead_rows(made: Scene) -> int:
    conn = await connect(made.bench.stack.postgres)
    try:
        return int(await conn.fetchval("SELECT count(*) FROM dead_letter WHERE reason <> ''"))
    finally:
        await conn.close()


async def lost_tail(options: ChaosOptions, made: Scene) -> Json:
    """The broker loses the end of placement's ledger, or all: who knew it stops and says so."""
    data_dir = made.bench.stack.data_dir
    folder = data_dir / options.broker / "kafka" / "log" / f"placement-{LANE}"
    await faults.signal_to(data_dir, "broker", signal.SIGKILL)
    lost = faults.cut(folder, options.lost_share)
    await faults.until(made.broker_is_open, NEXT_S)
    expected = {"placement", "projector", "publisher", "executor-virtual"}
    began = time.time()
    await faults.until(lambda: expected <= said_why(data_dir).keys(), 90.0)
    why = said_why(data_dir)
    states = await asyncio.to_thread(supervise.status, data_dir)
    return {
        "bytes_lost": lost,
        "share_lost": options.lost_share,
        "stopped_and_said_why": sorted(why),
        "after_s": round(time.time() - began, 1),
        "not_started_again": sorted(s.name for s in states if s.name in why and not s.pid),
        "a_line": why.get("placement", ""),
    }


def said_why(data_dir: Path) -> dict[str, str]:
    """The last line that names a runbook, of each service that wrote one."""
    found: dict[str, str] = {}
    for service in SERVICES:
        path = data_dir / "logs" / f"{service.name}.log"
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        named = [line for line in lines if RUNBOOK in line]
        if named:
            found[service.name] = named[-1][:400]
    return found


PARTS: dict[str, Part] = {
    "stall": stall,
    "recovery": recovery,
    "kills": kills,
    "zombies": zombies,
    "broker": broker,
    "away": away,
    "postgres": postgres,
    "slow": slow,
    "soak": soaked,
    "flood": flood,
    "crowd": lambda options, made, _: crowd(made, options.crowd),
    "lost_tail": lambda options, made, _: lost_tail(options, made),
}


if __name__ == "__main__":
    serve(run, ChaosOptions, __doc__ or "")
