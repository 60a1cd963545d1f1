"""A million malformed records of one tenant, and the delay of another tenant's jobs behind them.

`--out DIR` writes a page.
"""

from __future__ import annotations

import asyncio
import random
import time

from aiokafka import AIOKafkaProducer

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.burst import publish, register_tenants, waits_s
from benchmarks.parts.chaos.flood import count_dead_letters
from benchmarks.parts.chaos.loaded_stack import LoadedStack, loaded_stack
from benchmarks.parts.chaos.verdict import check_installation
from benchmarks.parts.command import Json, serve
from benchmarks.parts.flood.options import FloodOptions, check_options
from benchmarks.parts.flood.page import goals_of, render_page
from benchmarks.parts.percentiles import summarize
from benchmarks.parts.result import finish
from benchmarks.parts.stack import bench_stack
from services.gateway.settings import GatewaySettings
from shared.contracts.topics import submissions
from shared.process.progress import ReportLine

FLOOD, STEADY = "flood", "steady"
"""Tenants: one publishes malformed records alone, the other a job from time to time."""
KINDS = 1_000
"""Malformed records that differ; the flood repeats them."""
PLACED_LIMIT_S = 60.0


async def run(options: FloodOptions, report_line: ReportLine) -> Json:
    """Return the delays, and the verdict of `verify`. Raises ValueError for wrong options."""
    check_options(options)
    began_s = time.process_time()
    async with (
        bench_stack(options.broker, report_line) as bench,
        loaded_stack(bench, 0.0, report_line) as loaded,
    ):
        result: Json = {"bench": "flood", **await measure(options, loaded)}
    result["settings"] = settings_of(options)
    result["goals"] = goals_of(result)
    return finish(result, began_s, options.out, render_page)


async def measure(options: FloodOptions, loaded: LoadedStack) -> Json:
    """Publish the flood, and jobs before it, with it and behind it."""
    await register_tenants(loaded, (FLOOD, STEADY))
    first = await publish(loaded, STEADY, "first")
    await faults.wait_until(lambda: first in loaded.placed, PLACED_LIMIT_S)
    alone = await publish_jobs(loaded, options, "alone", options.alone)
    loaded.report_line(f"publishing {options.malformed:,} malformed records")
    began, cpu_s = time.time(), sum(loaded.bench.cpu_s().values())
    publishing = asyncio.ensure_future(publish_flood(options, loaded))
    meanwhile: dict[str, float] = {}
    while not publishing.done():
        meanwhile |= await publish_jobs(loaded, options, f"with-{len(meanwhile)}", 1)
    await publishing
    published_s = time.time() - began
    loaded.report_line(f"published in {published_s:.0f} s; {options.jobs} jobs behind it")
    behind = await publish_jobs(loaded, options, "behind", options.jobs)
    good = alone | meanwhile | behind
    await faults.wait_until(lambda: loaded.placed.keys() >= good.keys(), PLACED_LIMIT_S)
    cpu_s = sum(loaded.bench.cpu_s().values()) - cpu_s
    all_ended = await loaded.all_ended(PLACED_LIMIT_S)
    verdict = await check_installation(loaded, all_ended)
    return {
        "malformed": options.malformed,
        "dead_letters": await count_dead_letters(loaded),
        "good_jobs": len(good),
        "placed": len(loaded.placed.keys() & good.keys()),
        "alone_s": summarize(waits_s(loaded, alone)),
        "while_published_s": summarize(waits_s(loaded, meanwhile)),
        "behind_s": summarize(waits_s(loaded, behind)),
        "published_in_s": round(published_s, 1),
        "cpu_s_of_the_stack": round(cpu_s, 1),
        "verify": verdict["verify"],
        "violations": verdict["violations"],
    }


async def publish_flood(options: FloodOptions, loaded: LoadedStack) -> None:
    """Publish malformed records to all partitions as fast as the broker takes them."""
    draw = random.Random(options.seed)
    records = [faults.malformed(draw) for _ in range(min(KINDS, options.malformed))]
    stack = loaded.bench.stack
    connection = stack.connection("operator")
    producer = AIOKafkaProducer(
        **connection.aiokafka(),
        linger_ms=20,
        max_batch_size=256 * 1024,
        enable_idempotence=connection.idempotent,
    )
    await producer.start()
    try:
        topic, sent = submissions(FLOOD).name, None
        for number in range(options.malformed):
            value = records[number % len(records)]
            sent = await producer.send(topic, value, partition=number % stack.partitions)
        await producer.flush()
        if sent is not None:
            await sent
    finally:
        await producer.stop()


async def publish_jobs(
    loaded: LoadedStack, options: FloodOptions, name: str, jobs: int
) -> dict[str, float]:
    """Publish jobs of the other tenant, one each interval; return the time of each by job id."""
    acked: dict[str, float] = {}
    for number in range(jobs):
        acked[await publish(loaded, STEADY, f"{name}-{number}")] = time.time()
        await asyncio.sleep(options.every_s)
    return acked


def settings_of(options: FloodOptions) -> dict[str, object]:
    fields = GatewaySettings.model_fields
    return {
        "broker": options.broker,
        "every_s": options.every_s,
        "rate": fields["tenant_rate"].default,
        "burst": fields["tenant_burst"].default,
    }


if __name__ == "__main__":
    serve(run, FloodOptions, __doc__ or "")
