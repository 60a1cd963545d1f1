"""SIGKILL of every service once while jobs run: nothing lost, and how soon each decides again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from infra import supervise
from infra.running import Broker
from infra.stack import SERVICES
from shared.bus.tail import LedgerTail
from shared.contracts.topics import LEDGERS
from shared.projections import cursor
from shared.projections.database import connect
from shared.verify.reading import Logs
from shared.verify.run import verify
from simulator.benchmarks.parts.command import serve
from simulator.benchmarks.parts.load import Load, percentile
from simulator.benchmarks.parts.stack import LANE, Bench, bench_stack

Say = Callable[[str], None]
Json = dict[str, object]
Alive = Callable[[Bench, float], Awaitable[bool]]

NEXT_S = 60.0
REST_S = 3.0


@dataclass(frozen=True, slots=True)
class Options:
    broker: Broker = "kafka"
    jobs: int = 2000
    per_s: float = 25.0
    mean_ms: float = 400.0
    end_s: float = 120.0


@dataclass(slots=True)
class Ledgers:
    """When each service last said something, by the ledgers' own times and our clock."""

    seen: dict[str, float] = field(default_factory=dict)
    reports_at: float = 0.0

    async def follow(self, tail: LedgerTail) -> None:
        while True:
            for accepted in await tail.poll(0.1):
                at = accepted.record.at / 1000
                self.seen[accepted.ledger] = max(self.seen.get(accepted.ledger, 0.0), at)
                if accepted.ledger == "placement":
                    for raw in accepted.raw():
                        if raw.type in ("allocation.released.v1", "workers.ready.v1"):
                            self.reports_at = max(self.reports_at, at)


async def run(options: Options, say: Say) -> Json:
    """One JSON object: times from kill to the next decision, and what verify said."""
    async with bench_stack(options.broker, say) as bench:
        load = Load(bench, options.mean_ms / 1000)
        took = await under_load(bench, load, options, say)
        say("waiting for the jobs to end")
        await ended(load, options.end_s)
        await settle(bench)
        conn = await connect(bench.stack.postgres)
        report = await verify(Logs(bench.log(), bench.stack.partitions), conn, say)
        await conn.close()
    times = [took_s for took_s in took.values() if took_s < NEXT_S]
    return {
        "bench": "kills",
        "verify": "ok" if report.ok else "failed",
        "violations": [f"{v.rule}: {v.where}: {v.what}" for v in report.violations[:20]],
        "jobs": load.number,
        "ended": load.ended,
        "kills": len(took),
        "kill_to_next_decision_s": {name: round(s, 2) for name, s in sorted(took.items())},
        "p50_s": round(percentile(times, 0.5), 2),
        "max_s": round(max(took.values(), default=0.0), 2),
        "settings": {"broker": options.broker, "jobs": options.jobs, "per_s": options.per_s},
    }


async def under_load(bench: Bench, load: Load, options: Options, say: Say) -> dict[str, float]:
    """Kills are spread over the time that the submits take."""
    ledgers = Ledgers()
    tail = LedgerTail(bench.log("kills"), {name: [lane_of(name)] for name in LEDGERS})
    jobs = LedgerTail(bench.log("kills-jobs"), {"placement": [LANE]})
    await tail.start()
    await jobs.start()
    await load.start()
    tasks = [
        asyncio.ensure_future(ledgers.follow(tail)),
        asyncio.ensure_future(load.watch(jobs)),
        asyncio.ensure_future(load.at_rate(options.per_s, options.jobs / options.per_s)),
    ]
    try:
        took = await kill_each(bench, ledgers, say)
        await tasks[2]
        await ended(load, options.end_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await load.stop()
        await tail.stop()
        await jobs.stop()
    return took


def lane_of(ledger: str) -> int:
    return 0 if ledger == "access" else LANE


async def kill_each(bench: Bench, ledgers: Ledgers, say: Say) -> dict[str, float]:
    await asyncio.sleep(REST_S)
    took: dict[str, float] = {}
    for service in SERVICES:
        say(f"SIGKILL {service.name}")
        took[service.name] = await kill(bench, ledgers, service.name)
        await asyncio.sleep(REST_S)
    return took


async def kill(bench: Bench, ledgers: Ledgers, name: str) -> float:
    """Wall seconds from the signal to the next sign of work."""
    pid = await asyncio.to_thread(supervise.pid_of, bench.stack.data_dir, name)
    sign = sign_of_work(name, ledgers)
    killed = time.time()
    os.kill(pid, signal.SIGKILL)
    while time.time() - killed < NEXT_S:
        if await sign(bench, killed):
            return time.time() - killed
        await asyncio.sleep(0.05)
    return NEXT_S


def sign_of_work(name: str, ledgers: Ledgers) -> Alive:
    async def decided(bench: Bench, killed: float) -> bool:
        return ledgers.seen.get(name, 0.0) > killed + 0.05

    async def reported(bench: Bench, killed: float) -> bool:
        return ledgers.reports_at > killed + 0.3 and ready(bench, name)

    async def healthy(bench: Bench, killed: float) -> bool:
        return time.time() > killed + 0.3 and ready(bench, name)

    if name in ("admission", "priority", "placement"):
        return decided
    return reported if name == "executor-virtual" else healthy


def ready(bench: Bench, name: str) -> bool:
    port = bench.stack.ports[name]["metrics"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


async def ended(load: Load, within_s: float) -> None:
    until = time.time() + within_s
    while load.outstanding > 0 and time.time() < until:
        await asyncio.sleep(0.2)


async def settle(bench: Bench) -> None:
    """The projector's and publisher's last batches; verify has patience of its own."""
    conn = await connect(bench.stack.postgres)
    try:
        for _ in range(50):
            before = await cursor.read(conn)
            await asyncio.sleep(0.3)
            if await cursor.read(conn) == before:
                return
    finally:
        await conn.close()


if __name__ == "__main__":
    serve(run, Options, __doc__ or "")
