"""Proposes transfers of waiting jobs, and submits those that left their pool to the next one.

It keeps no state that matters: what is to be submitted follows from the read models, and a repeated
submission is a duplicate. So each gateway may do it, and any of them may end at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, cast
from uuid import uuid4

from aiokafka.errors import KafkaError

from services.gateway.access import AccessDirectory
from services.gateway.core.named_pools import other_pools
from services.gateway.core.transfers import Proposal, Room, WaitingJob, proposals, transferred_spec
from services.gateway.kafka.outbox import OutgoingCommand
from services.gateway.reads import queries, transfer_queries
from services.gateway.reads.database import Row
from services.gateway.reads.recorded_specs import SpecPosition, recorded_spec
from services.gateway.responses.problem import ApiError
from shared.bus.clock import now_ms
from shared.bus.logs.log import Log
from shared.contracts.base import Command
from shared.contracts.bounds import MOST_GPUS
from shared.contracts.gang_needs import NodeKind, kind_of, shape_of
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import JobSpec
from shared.contracts.registry import Bearer
from shared.contracts.transfers import TransferJob, TransferTarget
from shared.ledger.errors import ArchiveUnreachable

PASS_S = 1.0
AGAIN_S = 10.0
"""A command is repeated only after this time without an effect in the read models."""
RECENT_MS = 600_000
WHOLE_EVERY = 60
"""Passes of which one looks at all transferred jobs, the others at those of `RECENT_MS`."""
MOST_JOBS = 1_000
TOPIC = "commands"
BERTH = Bearer("transfers", "operator", None)
"""The bearer of its reads."""
UNREADABLE = (ApiError, KafkaError, OSError, TimeoutError, ArchiveUnreachable)

log = logging.getLogger(__name__)


class Reads(Protocol):
    """The read models."""

    async def rows(self, bearer: Bearer, sql: str, *values: object) -> list[Row]: ...


class Commands(Protocol):
    """The topics of commands."""

    async def put(self, topic: str, partition: int, command: OutgoingCommand) -> None: ...


class Transfers:
    """Transfers of one gateway."""

    def __init__(
        self,
        access: AccessDirectory,
        outbox: Commands,
        database: Reads,
        open_log: Callable[[], Log],
    ) -> None:
        self._access = access
        self._outbox = outbox
        self._database = database
        self._open_log = open_log
        self._sent: OrderedDict[str, float] = OrderedDict()
        """Time of the loop at which a command was sent, by what it is about."""

    async def run(self) -> None:
        """Work until cancelled; without Postgres or broker it tries again."""
        number = 0
        while True:
            await asyncio.sleep(PASS_S)
            if len(self._access.pools()) < 2:
                continue
            try:
                since = 0 if number % WHOLE_EVERY == 0 else now_ms() - RECENT_MS
                await self.deliver(since)
                await self.propose(now_ms())
                number += 1
            except UNREADABLE as error:
                log.warning("no transfers now", extra={"reason": type(error).__name__})

    async def deliver(self, since_ms: int) -> None:
        """Submit the jobs that left their pool since then, and pass on cancels that missed them."""
        for row in await self._rows(transfer_queries.UNDELIVERED, since_ms, MOST_JOBS):
            await self.submit(row)
        for row in await self._rows(transfer_queries.UNCANCELLED, since_ms, MOST_JOBS):
            job_id, tenant = str(row["job_id"]), str(row["tenant"])
            cancel = CancelJob(job_id=job_id, tenant=tenant, reason="cancelled on its way here")
            await self._send(f"cancel {job_id}", str(row["pool"]), cancel, tenant)

    async def submit(self, row: Row) -> None:
        """Submit a job of `UNDELIVERED` to the pool that it goes to."""
        job_id, tenant = str(row["job_id"]), str(row["tenant"])
        target = TransferTarget.model_validate(row["transferred_to"])
        spec = await self._spec(job_id, tenant)
        if spec is None:
            log.error("a transferred job has no specification", extra={"job_id": job_id})
            return
        command = SubmitJob(
            job_id=target.job_id,
            tenant=tenant,
            pool=target.pool,
            idempotency_key=f"transfer/{job_id}",
            spec=transferred_spec(spec, job_id, str(row["pool"]), target),
            by_operator=True,
        )
        principal = str(row["submitted_by"] or "")
        await self._send(
            f"submit {target.job_id}",
            target.pool,
            command,
            tenant,
            principal=principal,
            traceparent=str(row["traceparent"]),
        )

    async def propose(self, now: int) -> None:
        """Propose the transfers of waiting jobs that another of their pools can start at once."""
        rows = await self._rows(transfer_queries.WAITING, MOST_JOBS)
        waiting = list(self._waiting(rows))
        named = sorted({pool for job in waiting for pool in job.others})
        if not named:
            return
        rooms = await self._rooms(named, sorted({job.tenant for job in waiting}))
        await self._bound_users(rooms, {(job.tenant, job.user) for job in waiting})
        for proposal in proposals(waiting, rooms, now):
            await self._propose(proposal)

    async def _propose(self, proposal: Proposal) -> None:
        command = TransferJob(job_id=proposal.job_id, pool=proposal.to_pool)
        about = f"transfer {proposal.job_id}"
        if await self._send(about, proposal.from_pool, command, proposal.tenant):
            # Until the job is there the read models show the room that it takes.
            self._note(f"pool {proposal.to_pool}")

    def _waiting(self, rows: list[Row]) -> Iterator[WaitingJob]:
        pools = self._access.view.pools
        for row in rows:
            spec = JobSpec.model_validate(row["spec"])
            tenant, pool = str(row["tenant"]), str(row["pool"])
            rules = other_pools(spec, tenant, pool, pools)
            others = tuple(name for name, rule in rules.items() if not rule)
            yield WaitingJob(
                str(row["job_id"]),
                tenant,
                pool,
                others,
                shape_of(spec),
                cast("float", row["gpus"]),
                spec.spot,
                cast("int", row["since"]),
                spec.transferred.transfers if spec.transferred else 0,
                spec.user,
            )

    async def _rooms(self, pools: list[str], tenants: list[str]) -> dict[str, Room]:
        """Return what is free in those of the pools in which no job waits, nor is on its way."""
        idle = await self._rows(transfer_queries.IDLE_POOLS, pools)
        lanes = {
            cast("int", row["partition"]): str(row["pool"])
            for row in idle
            if not self._is_recent(f"pool {row['pool']}")
        }
        rooms = {name: Room([]) for name in lanes.values()}
        numbers = sorted(lanes)
        held = held_by_node(await self._rows(transfer_queries.HELD, numbers))
        for row in await self._rows(transfer_queries.FREE_NODES, numbers):
            node = free_of(row, held.get(str(row["node_id"]), []))
            rooms[lanes[cast("int", row["partition"])]].nodes.append(node)
        for row in await self._rows(transfer_queries.QUOTA_LEFT, numbers, tenants):
            room = rooms[lanes[cast("int", row["partition"])]]
            room.quota_gpus[str(row["tenant"])] = float(cast("float", row["left_gpus"]))
        return rooms

    async def _bound_users(self, rooms: Mapping[str, Room], users: set[tuple[str, str]]) -> None:
        """Note in the rooms what users with a bound of their GPUs may still get there."""
        registry, pools = self._access.view.users, self._access.pools()
        most = {owner: registry.bounds_of(*owner).max_gpus for owner in users}
        bounded = {owner: gpus for owner, gpus in most.items() if gpus < MOST_GPUS}
        lanes = {pools[pool]: room for pool, room in rooms.items() if pool in pools}
        if not (bounded and lanes):
            return
        for room in lanes.values():
            room.user_gpus |= bounded
        tenants = sorted({tenant for tenant, _ in bounded})
        for row in await self._rows(transfer_queries.GPUS_OF_USERS, sorted(lanes), tenants):
            owner = str(row["tenant"]), str(row["user"])
            if owner in bounded:
                room = lanes[cast("int", row["partition"])]
                room.user_gpus[owner] -= cast("float", row["gpus"])

    async def _spec(self, job_id: str, tenant: str) -> JobSpec | None:
        rows = await self._rows(queries.SPEC_POSITION, None, job_id)
        if not rows:
            return None
        at = SpecPosition(
            *(cast("int", rows[0][name]) for name in ("partition", "seq", "accepted_at"))
        )
        return await recorded_spec(self._open_log(), at, job_id, tenant)

    async def _rows(self, sql: str, *values: object) -> list[Row]:
        return await self._database.rows(BERTH, sql, *values)

    async def _send(
        self, about: str, pool: str, command: Command, tenant: str, **envelope: str
    ) -> bool:
        """Send a command to a pool unless it was sent a moment ago; return whether it was."""
        lane = self._access.pools().get(pool)
        if lane is None or self._is_recent(about):
            return False
        job_id: Any = getattr(command, "job_id", "")
        outgoing = OutgoingCommand(
            str(uuid4()),
            command,
            str(job_id),
            tenant,
            pool,
            access_next=self._access.next,
            **envelope,
        )
        await self._outbox.put(TOPIC, lane, outgoing)
        self._note(about)
        return True

    def _is_recent(self, about: str) -> bool:
        sent = self._sent.get(about)
        return sent is not None and asyncio.get_running_loop().time() - sent < AGAIN_S

    def _note(self, about: str) -> None:
        self._sent[about] = asyncio.get_running_loop().time()
        self._sent.move_to_end(about)
        if len(self._sent) > 10 * MOST_JOBS:
            self._sent.popitem(last=False)


def held_by_node(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the allocations that are held, by node."""
    held: dict[str, list[Row]] = {}
    for row in rows:
        held.setdefault(str(row["node_id"]), []).append(row)
    return held


def free_of(node: Row, held: list[Row]) -> NodeKind:
    """Return what is free on a node: its GPUs of which no part is held, cores and memory."""
    taken = {gpu for row in held for gpu in cast("list[int]", row["gpus"])}
    taken |= set(cast("list[int]", node["unusable_gpus"]))
    return kind_of(
        str(node["gpu_type"]),
        cast("int", node["gpus"]) - len(taken),
        cast("float", node["cpus"]) - sum(cast("float", row["cpus"]) for row in held),
        cast("float", node["mem_gib"]) - sum(cast("float", row["mem_gib"]) for row in held),
        dict(cast("Mapping[str, str]", node["labels"])),
    )
