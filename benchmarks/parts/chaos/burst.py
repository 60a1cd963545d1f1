"""A burst of thousands of jobs of one tenant, and the waiting times of another tenant's jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from benchmarks.parts.chaos.faults import wait_until
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.chaos.options import ChaosOptions
from benchmarks.parts.chaos.result_file import ResultFile
from benchmarks.parts.command import Json
from benchmarks.parts.percentiles import summarize
from benchmarks.parts.stack import POOL, as_record
from infra.broker import topics
from shared.contracts.access import RegisterTenant
from shared.contracts.identity import derive_job_id
from shared.contracts.job_commands import SubmitJob
from shared.contracts.topics import submissions, tenant_events
from shared.ledger.cloudevents import encode
from shared.ledger.partition import TP

BURST, STEADY = "burst", "steady"
"""Tenants: one publishes everything at once, the other a job every half second."""
JOBS_BEFORE = 20
BATCH = 1_000
EVERY_S = 0.5
PLACED_LIMIT_S = 60.0
SLOWEST_PER_S = 50
"""The time limit allows for this rate of placements."""


async def crowd(options: ChaosOptions, loaded: LoadedStack, _results: ResultFile) -> Json:
    """Measure seconds from acknowledgement to placement of a steady tenant, before and during the
    burst."""
    at_once = options.crowd
    await register_tenants(loaded, (BURST, STEADY))
    first = await publish(loaded, STEADY, "first")
    await wait_until(lambda: first in loaded.placed, PLACED_LIMIT_S)
    alone: dict[str, float] = {}
    await _publish_steadily(loaded, alone, JOBS_BEFORE)
    behind: dict[str, float] = {}
    began = time.time()
    burst: list[str] = []
    while len(burst) < at_once:
        keys = range(len(burst), min(len(burst) + BATCH, at_once))
        burst += await asyncio.gather(*(publish(loaded, BURST, str(key)) for key in keys))
    published_s = time.time() - began
    ends = time.time() + PLACED_LIMIT_S + at_once / SLOWEST_PER_S
    while not loaded.placed.keys() >= set(burst) and time.time() < ends:
        await _publish_steadily(loaded, behind, 1)
    burst_s = time.time() - began
    await wait_until(lambda: loaded.placed.keys() >= behind.keys(), PLACED_LIMIT_S)
    return {
        "at_once": at_once,
        "published_in_s": round(published_s, 1),
        "placed": len(loaded.placed.keys() & set(burst)),
        "all_placed_after_s": round(burst_s, 1),
        "another_waited_alone_s": summarize(waits_s(loaded, alone)),
        "another_waited_behind_s": summarize(waits_s(loaded, behind)),
    }


async def register_tenants(loaded: LoadedStack, tenants: Sequence[str]) -> None:
    """Register tenants, with topics of their own."""
    stack = loaded.bench.stack
    specs = [spec for name in tenants for spec in (submissions(name), tenant_events(name))]
    await asyncio.to_thread(
        topics.create, stack.connection("admin"), stack.partitions, stack.durable, specs
    )
    for name in tenants:
        command = RegisterTenant(tenant=name, default_pool=POOL)
        await loaded.append(TP("access.commands", 0), as_record(command))


async def _publish_steadily(loaded: LoadedStack, acked: dict[str, float], jobs: int) -> None:
    for _ in range(jobs):
        job_id = await publish(loaded, STEADY, f"{len(acked)}-{time.time_ns()}")
        acked[job_id] = time.time()
        await asyncio.sleep(EVERY_S)


async def publish(loaded: LoadedStack, tenant: str, key: str) -> str:
    """Publish a job to the tenant's own topic; return its id once acknowledged."""
    spec = {"name": tenant, "simulated": {"duration_s": 0.1}}
    data = msgspec.json.encode({"idempotency_key": key, "spec": spec})
    value = encode(id=key, source="/berth/bench", type=SubmitJob.TYPE, data=data)
    job_id = derive_job_id(tenant, POOL, key)
    loaded.expect(job_id)
    await loaded.append(TP(submissions(tenant).name, 0), value)
    return job_id


def waits_s(loaded: LoadedStack, acked: dict[str, float]) -> list[float]:
    """Return the waits of the jobs that were placed; not negative, as ledger times are in ms."""
    placed = loaded.placed
    return [max(0.0, placed[job] - at) for job, at in acked.items() if job in placed]
