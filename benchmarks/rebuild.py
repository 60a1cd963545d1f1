"""Ledgers of a million events: a rebuild of all read models, and the start of placement over them.

Real Kafka and real Postgres, no service running; the events are written by `history`.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts import history
from benchmarks.parts.command import Json, serve
from infra.broker import kafka, tansu, topics
from infra.machine.owned_folders import scratch_folder
from infra.machine.process import Running, free_ports
from infra.postgres import server as postgres
from infra.supervisor.running import Broker
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from shared.bus.folds.fold import Fold
from shared.bus.folds.fold_key import key_of_state
from shared.bus.folds.snapshots import Snapshots
from shared.bus.logs.kafka import KafkaLog
from shared.contracts.topics import TOPICS
from shared.ledger.reader import Cursor
from shared.process.connection import Connection
from shared.process.progress import ReportLine
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.migrate import migrate
from shared.projections.project import project
from shared.projections.rebuild import rebuild
from shared.projections.source import Source, prefetch


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    broker: Broker = "kafka"
    events: int = 1_000_000
    batch_records: int = 3_000


@dataclass(frozen=True, slots=True)
class EmptyServers:
    """A broker and a database without services."""

    connection: Connection
    dsn: str
    folder: Path

    def log(self) -> KafkaLog:
        return KafkaLog(self.connection, client="bench")


async def run(options: RebuildOptions, report_line: ReportLine) -> Json:
    """Return wall seconds, CPU seconds and whether the hashes were equal."""
    with scratch_folder("bench") as folder:
        (port,) = free_ports(1)
        broker = start_broker(options.broker, folder / "broker", port)
        database, dsn = postgres.start(folder / "pg")
        try:
            servers = EmptyServers(
                connection_to(options.broker, folder / "broker", port), dsn, folder
            )
            return await measure(options, servers, report_line)
        finally:
            database.stop()
            broker.stop()


def start_broker(kind: Broker, folder: Path, port: int) -> Running:
    if kind == "embedded":
        return tansu.start(folder, port)
    return kafka.start(folder, port, plain=kind == "kafka-plain")


def connection_to(kind: Broker, folder: Path, port: int) -> Connection:
    if kind == "embedded":
        return Connection(f"127.0.0.1:{port}", idempotent=False)
    return kafka.root(folder)


async def measure(options: RebuildOptions, servers: EmptyServers, report_line: ReportLine) -> Json:
    topics.create(servers.connection, 1, servers.connection.idempotent, list(TOPICS.values()))
    report_line(f"writing {options.events:,} events")
    events = await history.write(servers.connection, options.events, lambda n: None)
    await migrate(servers.dsn)
    report_line("catching up as the projector does")
    caught_up_s = await catch_up(servers, options.batch_records)
    report_line("rebuilding into new tables, compared by hash")
    begin, cpu = time.perf_counter(), time.process_time()
    result = await rebuild(servers.dsn, servers.log(), 1, swap=True)
    rebuilt_s, rebuilt_cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    report_line("starting placement from 0 and from its snapshot")
    from_0_s, from_snapshot_s = await measure_starts(servers)
    return {
        "bench": "rebuild",
        "events": events,
        "projector_catch_up_s": round(caught_up_s, 1),
        "projected_events_per_s": round(events / caught_up_s, 1),
        "rebuild_s": round(rebuilt_s, 1),
        "rebuild_cpu_s": round(rebuilt_cpu_s, 1),
        "rebuild_equal": result.different == [],
        "start_from_0_s": round(from_0_s, 2),
        "start_from_snapshot_s": round(from_snapshot_s, 2),
        "settings": {"broker": options.broker, "batch_records": options.batch_records},
    }


async def catch_up(servers: EmptyServers, batch_records: int) -> float:
    """Return the seconds that the projector's code takes to project everything."""
    conn = await connect(servers.dsn)
    source = Source(servers.log(), 1, await cursor.read(conn))
    await source.start()
    begin = time.perf_counter()
    try:
        async with aclosing(prefetch(lambda: source.poll(0.1, batch_records))) as polls:
            async for batches in polls:
                if not batches and source.caught_up:
                    break
                await project(conn, batches)
        return time.perf_counter() - begin
    finally:
        await source.stop()
        await conn.close()


async def measure_starts(servers: EmptyServers) -> tuple[float, float]:
    """Return the seconds until placement's state is folded: from 0, and from a snapshot."""
    placement = Placement()
    key = key_of_state(Pool)
    snapshots = Snapshots[Pool](servers.folder / "snapshots", placement.ledger, 0, key)
    log = servers.log()
    await log.start()
    try:
        begin = time.perf_counter()
        folded = await Fold[Pool](placement, 0, log, None).run(Cursor())
        from_0_s = time.perf_counter() - begin
        reader = folded.reader
        await asyncio.to_thread(
            snapshots.store, reader.cursor.seq, snapshots.pack(reader.cursor, folded.state)
        )
        begin = time.perf_counter()
        await Fold[Pool](placement, 0, log, snapshots).run(Cursor())
        return from_0_s, time.perf_counter() - begin
    finally:
        await log.stop()


if __name__ == "__main__":
    serve(run, RebuildOptions, __doc__ or "")
