"""One tenant publishes thousands of jobs at once: what becomes of another's, one at a time?"""

from __future__ import annotations

import asyncio
import time

import msgspec

from benchmarks.parts.faults import until
from benchmarks.parts.killing import spread
from benchmarks.parts.scene import Scene
from benchmarks.parts.stack import POOL, as_record
from infra.broker import topics
from shared.contracts.access import RegisterTenant
from shared.contracts.identity import derive_job_id
from shared.contracts.jobs import SubmitJob
from shared.contracts.topics import submissions, tenant_events
from shared.ledger.cloudevents import encode
from shared.ledger.partition import TP

CROWD, CALM = "crowd", "calm"
BEFORE = 20
BATCH = 1_000
EVERY_S = 0.5
HEARD_S = 60.0
SLOWEST_PER_S = 50
"""The crowd is waited for as long as if so few of its jobs were placed."""

Json = dict[str, object]


async def crowd(made: Scene, at_once: int) -> Json:
    """Seconds from a job's acknowledgement to its placement, while the tenant's jobs are alone and
    while the crowd is there."""
    await _let_in(made)
    first = await _publish(made, CALM, "first")
    await until(lambda: first in made.placed, HEARD_S)
    sent: dict[str, float] = {}
    await _one_by_one(made, sent, BEFORE)
    alone, sent = sent, {}
    began = time.time()
    many: list[str] = []
    while len(many) < at_once:
        keys = range(len(many), min(len(many) + BATCH, at_once))
        many += await asyncio.gather(*(_publish(made, CROWD, str(key)) for key in keys))
    published_s = time.time() - began
    ends = time.time() + HEARD_S + at_once / SLOWEST_PER_S
    while not made.placed.keys() >= set(many) and time.time() < ends:
        await _one_by_one(made, sent, 1)
    crowd_s = time.time() - began
    await until(lambda: made.placed.keys() >= sent.keys(), HEARD_S)
    return {
        "at_once": at_once,
        "published_in_s": round(published_s, 1),
        "placed": len(made.placed.keys() & set(many)),
        "all_placed_after_s": round(crowd_s, 1),
        "another_waited_alone_s": spread(_waits(made, alone)),
        "another_waited_behind_s": spread(_waits(made, sent)),
    }


async def _let_in(made: Scene) -> None:
    stack = made.bench.stack
    specs = [spec for name in (CROWD, CALM) for spec in (submissions(name), tenant_events(name))]
    await asyncio.to_thread(
        topics.create, stack.connection("admin"), stack.partitions, stack.durable, specs
    )
    for name in (CROWD, CALM):
        command = RegisterTenant(tenant=name, default_pool=POOL)
        await made.put(TP("access.commands", 0), as_record(command))


async def _one_by_one(made: Scene, sent: dict[str, float], jobs: int) -> None:
    for _ in range(jobs):
        job_id = await _publish(made, CALM, f"{len(sent)}-{time.time_ns()}")
        sent[job_id] = time.time()
        await asyncio.sleep(EVERY_S)


async def _publish(made: Scene, tenant: str, key: str) -> str:
    """Its id, once the broker has it."""
    spec = {"name": tenant, "simulated": {"duration_s": 0.1}}
    data = msgspec.json.encode({"idempotency_key": key, "spec": spec})
    value = encode(id=key, source="/berth/bench", type=SubmitJob.TYPE, data=data)
    job_id = derive_job_id(tenant, POOL, key)
    made.asked(job_id)
    await made.put(TP(submissions(tenant).name, 0), value)
    return job_id


def _waits(made: Scene, sent: dict[str, float]) -> list[float]:
    """Of those that were placed; the ledger's time is in ms."""
    return [max(0.0, made.placed[job] - at) for job, at in sent.items() if job in made.placed]
