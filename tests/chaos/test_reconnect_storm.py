"""Many agents register anew at once: real lanes on the in-memory broker, and `verify` as judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from services.access.core.decide import Access
from services.admission.core.decide import Admission
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.priority.core.decide import Priority
from shared.bus.clock import LedgerClock, Reading, WallClock
from shared.bus.inputs.inbox import ACCESS
from shared.bus.lane.lane import Lane
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.access import RegisterTenant
from shared.contracts.base import Command, Model
from shared.contracts.codec import encode
from shared.contracts.job_commands import SubmitJob
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.pools import ConfigurePool
from shared.contracts.reports import (
    ExecutorReported,
    NodeRegistered,
    NodesSilent,
    Report,
    SilentNode,
    WorkerReady,
)
from shared.contracts.topics import INPUTS
from shared.ledger import cloudevents
from shared.ledger.decider import Decider
from shared.ledger.inputs import InputDecoder, commands_only
from shared.ledger.partition import TP
from shared.ledger.record import LIMIT_BYTES
from shared.verify.reading import InstallationLog
from shared.verify.run import verify

NOT_RUN = {"events hold what the ledgers say", "dead letters equal what was rejected"}
"""Rules about the publisher, which does not run here."""
START_MS = 1_700_000_000_000
SILENT_MS = 86_400_000
"""Longer than any lease."""
GPUS = 8


class TestClock(WallClock):
    """A wall clock that a test moves."""

    __test__ = False

    def __init__(self) -> None:
        super().__init__()
        self.at = START_MS

    def read(self) -> Reading:
        return Reading(self.at, 0.0, 0, 0)


def decode_report(topic: str, type_: str, data: bytes) -> Model:
    if topic == "reports":
        return ExecutorReported.model_validate_json(data)
    return commands_only(topic, type_, data)


@dataclass
class Site:
    """The deciders of one pool on one broker, and an executor that a test plays."""

    broker: MemoryBroker = field(default_factory=MemoryBroker)
    clock: TestClock = field(default_factory=TestClock)
    lanes: dict[str, Lane[Any]] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=count)

    async def open(self) -> None:
        deciders: Sequence[Decider[Any]] = (Access(), Admission(), Priority(), Placement())
        for decider in deciders:
            topics = [TP(topic, 0) for topic in INPUTS[decider.ledger]]
            access = [] if decider.ledger == "access" else [ACCESS]
            decoder = InputDecoder(decider.ledger, decode_report, decider.consumed_events)
            lane = self.lanes[decider.ledger] = Lane(
                decider,
                0,
                MemoryLog(self.broker),
                inputs=[*access, *topics],
                decoder=decoder,
                clock=LedgerClock(self.clock),
            )
            await lane.start()

    @property
    def pool(self) -> Pool:
        state: Pool = self.lanes["placement"].state
        return state

    async def reopened(self) -> Site:
        """Return the same site after all its processes were killed."""
        again = Site(self.broker, self.clock, ids=self.ids)
        await again.open()
        return again

    def command(self, *commands: Command) -> None:
        for message in commands:
            topic = "access.commands" if message.OWNER == "access" else "commands"
            self._send(topic, message.TYPE, message)

    def report(self, *reports: Report, executor: str = "e1") -> None:
        message = ExecutorReported(executor_id=executor, reports=reports)
        self._send("reports", message.TYPE, message)

    async def settle(self) -> None:
        """Deliver and decide until nothing is left to do."""
        quiet = 0
        while quiet < 2:
            self.clock.at += 50
            before = [lane.cursor.seq for lane in self.lanes.values()]
            for lane in self.lanes.values():
                await self.step(lane)
            is_idle = before == [lane.cursor.seq for lane in self.lanes.values()]
            quiet = quiet + 1 if is_idle else 0

    async def step(self, lane: Lane[Any]) -> None:
        """Deliver what lies in the lane's inputs, and run one round."""
        for tp, offset in lane.next_offsets().items():
            for entry in self.broker.entries(tp)[offset:]:
                await lane.deliver(tp, entry.offset, entry.value)
        await lane.poll()

    async def check(self) -> None:
        """Every record has its bounds, no GPU two holders, and `verify` finds nothing."""
        for ledger in self.lanes:
            sizes = [len(entry.value or b"") for entry in self.broker.entries(TP(ledger, 0))]
            assert max(sizes) <= LIMIT_BYTES
        log = InstallationLog(MemoryLog(self.broker), 1, quiet_s=0.0, catch_up_s=0.0)
        report = await verify(log, None)
        assert [v for v in report.violations if v.rule not in NOT_RUN] == []

    def _send(self, topic: str, type_: str, message: Model) -> None:
        value = cloudevents.encode(
            id=f"m{next(self.ids)}",
            source="/test",
            type=type_,
            data=encode(message),
            at_ms=self.clock.at,
        )
        self.broker.append(TP(topic, 0), value)


def node(number: int, incarnation: str) -> NodeRegistered:
    return NodeRegistered(
        node_id=f"node-{number:04d}",
        incarnation=incarnation,
        backend="virtual",
        gpu_type="a100",
        gpus=GPUS,
        cpus=64,
        mem_gib=512,
    )


async def full_site(nodes: int, jobs_per_node: int) -> Site:
    """Return a site whose nodes are full of running jobs."""
    site = Site()
    await site.open()
    site.command(ConfigurePool(pool="p", solver="greedy"))
    site.command(RegisterTenant(tenant="ada", default_pool="p"))
    site.report(*(node(n, "first") for n in range(nodes)))
    await site.settle()
    gang = Gang(workers=1, gpus_per_worker=GPUS / jobs_per_node)
    site.command(
        SubmitJob(
            job_id="array",
            tenant="ada",
            pool="p",
            idempotency_key="k",
            array_size=nodes * jobs_per_node,
            spec=JobSpec(name="j", command=("true",), gang=gang, retry={"max_attempts": 9}),
        )
    )
    await site.settle()
    site.report(*ready_reports(site))
    await site.settle()
    phases = {job.phase for job in site.pool.jobs.values()}
    assert len(site.pool.jobs) == nodes * jobs_per_node and phases == {"running"}
    return site


def ready_reports(site: Site) -> Iterator[WorkerReady]:
    for job in site.pool.jobs.values():
        for allocation_id in job.allocations:
            yield WorkerReady(allocation_id=allocation_id, job_id=job.job_id)


def registrations(nodes: int, incarnation: str) -> list[NodeRegistered]:
    return [node(n, incarnation) for n in range(nodes)]


def placed_again(site: Site, jobs: int) -> bool:
    held = [job for job in site.pool.jobs.values() if job.phase == "placed"]
    return len(held) == jobs and all(job.attempt == 2 for job in held)


async def test_an_executor_of_128_nodes_with_8_jobs_each_registers_anew_in_one_report() -> None:
    site = await full_site(128, 8)
    site.report(*registrations(128, "second"))
    await site.settle()
    assert placed_again(site, 128 * 8)
    await site.check()


async def test_a_decider_killed_between_two_records_of_an_answer_goes_on_where_it_ended() -> None:
    site = await full_site(128, 8)
    site.report(*registrations(128, "second"))
    seq = site.lanes["placement"].cursor.seq
    await site.step(site.lanes["placement"])
    lost = [host for host in site.pool.board.nodes.values() if host.incarnation == "first"]
    assert site.lanes["placement"].cursor.seq == seq + 1 and 0 < len(lost) < 128
    again = await site.reopened()
    assert again.lanes["placement"].next_offsets()[TP("reports", 0)] == 2, "it is still to decide"
    await again.settle()
    assert placed_again(again, 128 * 8)
    await again.check()


async def test_128_nodes_that_fall_silent_at_once_are_lost_in_bounded_records() -> None:
    site = await full_site(128, 8)
    silent = tuple(
        SilentNode(
            node_id=name,
            incarnation=node.incarnation,
            silent_ms=SILENT_MS,
            terms_id=node.oldest_terms,
        )
        for name, node in site.pool.board.nodes.items()
    )
    lost = site.lanes["placement"].offer(NodesSilent(nodes=silent))
    await site.settle()
    assert len([fact for fact in await lost if fact.event.TYPE == "node.lost.v1"]) == 128
    assert site.pool.board.nodes == {} and len(site.pool.waiting) == 128 * 8
    await site.check()


@pytest.mark.slow
async def test_1000_agents_that_reconnect_at_once_are_registered_in_bounded_records() -> None:
    site = await full_site(1000, 1)
    for n, registration in enumerate(registrations(1000, "second")):
        site.report(registration, executor=f"e{n}")
    await site.settle()
    assert placed_again(site, 1000)
    await site.check()
