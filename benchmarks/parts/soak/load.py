"""The load of a soak beside plain jobs: arrays, cancels, drains, slow nodes, malformed records."""

from __future__ import annotations

import asyncio
import random
from itertools import count

from benchmarks.parts.chaos import faults
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.stack import LANE, TENANT, as_record
from shared.contracts.injections import InjectFault
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.nodes import DrainNode, UncordonNode
from shared.ledger.partition import TP

COMMANDS = TP("commands", LANE)
ARRAY = 10
LOAD = (
    "arrays, cancels, drains, slow nodes, malformed records, submissions and reads by the API, "
    "LLM requests of two tenants to two emulated engines, a reader of the event stream, and an "
    "archive of the ledgers"
)
SLOW_S = 8.0


async def disturb(loaded: LoadedStack, nodes: list[str], every_s: float = 5.0) -> None:
    """Each interval cancel a job, submit an array, drain a node and slow down another, append
    malformed records.
    """
    draw = random.Random(loaded.prefix)
    for turn in count():
        await asyncio.sleep(every_s)
        if going := sorted(loaded.going):
            cancel = CancelJob(job_id=going[-1], tenant=TENANT)
            await loaded.append(COMMANDS, as_record(cancel))
        loaded.number += 1
        name = f"{loaded.prefix}-array-{loaded.number}"
        _, pool = loaded.target()
        array = SubmitJob(
            job_id=name,
            tenant=TENANT,
            pool=pool,
            idempotency_key=name,
            array_size=ARRAY,
            spec=loaded.next_spec(),
        )
        await loaded.append(COMMANDS, as_record(array, name))
        for _ in range(5):
            await loaded.append(COMMANDS, faults.malformed(draw))
        node = nodes[turn % len(nodes)]
        await loaded.append(COMMANDS, as_record(DrainNode(node_id=node)))
        slow = InjectFault(
            node_id=nodes[(turn + 1) % len(nodes)], fault="slow", factor=3.0, for_s=SLOW_S
        )
        await loaded.append(COMMANDS, as_record(slow))
        await asyncio.sleep(every_s)
        await loaded.append(COMMANDS, as_record(UncordonNode(node_id=node)))
