"""Verify is green on an honest log and red on each damage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.base import EVENTS, Event
from shared.contracts.codec import encode, encode_event
from shared.contracts.jobs import (
    ArrayAccepted,
    ArrayCancelRequested,
    CancelJob,
    CommandAccepted,
    CommandRefused,
    Gang,
    JobAdmitted,
    JobDeferred,
    JobRejected,
    JobSpec,
    SubmitJob,
)
from shared.contracts.nodes import NodeJoined, NodeLost
from shared.contracts.placement import (
    Allocation,
    AllocationReleased,
    JobCancelled,
    JobEnqueued,
    JobMigrated,
    JobPlaced,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.rejected import InputRejected
from shared.contracts.reports import ExecutorReported, WorkerReady
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.migrate import migrate
from shared.projections.project import project
from shared.projections.source import Source
from shared.testing.ledgers import LedgerWriter
from shared.verify.reading import InstallationLog
from shared.verify.run import VerifyReport, verify

SPEC = JobSpec(name="train", gang=Gang(gpus_per_worker=2))
BAD = b"not json"


def logs(broker: MemoryBroker) -> InstallationLog:
    return InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, patience_s=0.5)


class World:
    """A tiny installation by hand: one job that ran, one that waits, one poison record."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.admission = LedgerWriter(self.broker, "admission")
        self.placement = LedgerWriter(self.broker, "placement")
        self.published = 0
        self.command(
            "c1", SubmitJob(job_id="j1", tenant="red", pool="p", idempotency_key="1", spec=SPEC)
        )
        self.command(
            "c2", SubmitJob(job_id="j2", tenant="red", pool="p", idempotency_key="2", spec=SPEC)
        )
        self.command("c3", CancelJob(job_id="j2"))
        self.raw("commands", BAD)
        self.admit("c1", "j1")
        self.admit("c2", "j2")
        self.reject(3)
        self.admission.inputs = {"commands-0": 4}
        self.admission.write([])
        self.join("n1")
        self.placement.inputs = {"admission-0": (4, 4, "admission-0-4")}
        self.enqueue("j1")
        self.enqueue("j2")
        self.place = self.run("j1")
        self.release("j1", self.place)
        self.succeed("j1")

    def array(self, stem: str, size: int) -> None:
        self.command(
            "c8",
            SubmitJob(
                job_id=stem,
                tenant="red",
                pool="p",
                idempotency_key=stem,
                array_size=size,
                spec=SPEC,
            ),
        )
        self.admission.write(
            [
                CommandAccepted(command_id="c8", command_type="job.submit.v1", of=stem),
                ArrayAccepted(job_id=stem, tenant="red", array_size=size, spec=SPEC),
            ]
        )
        for index in range(size):
            self.defer(stem, index)

    def defer(self, stem: str, index: int) -> None:
        self.admission.write(
            [
                JobDeferred(
                    job_id=f"{stem}.{index}",
                    tenant="red",
                    reason="quota",
                    spec=SPEC,
                    array_index=index,
                )
            ]
        )

    def cancel(self, command_id: str, of: str) -> None:
        self.command(command_id, CancelJob(job_id=of))
        self.admission.inputs = {"commands-0": len(self.broker.entries(TP("commands", 0)))}

    def raw(self, topic: str, value: bytes) -> int:
        return self.broker.append(TP(topic, 0), value)

    def command(self, command_id: str, command: SubmitJob | CancelJob) -> None:
        self.raw(
            "commands",
            cloudevents.encode(
                id=command_id, source="/test", type=command.TYPE, data=encode(command)
            ),
        )

    def admit(self, command_id: str, job: str) -> None:
        self.admission.write(
            [
                CommandAccepted(command_id=command_id, command_type="job.submit.v1", of=job),
                JobAdmitted(job_id=job, tenant="red", submitted_at=1, spec=SPEC),
            ]
        )

    def reject(self, offset: int, value: bytes = BAD) -> None:
        sha = hashlib.sha256(value).hexdigest()
        self.admission.write(
            [InputRejected(topic="commands", partition=0, offset=offset, reason="bad", sha256=sha)]
        )
        self.dead(offset, value)

    def dead(self, offset: int, value: bytes) -> None:
        told = {
            "berth-topic": b"commands",
            "berth-partition": b"0",
            "berth-offset": str(offset).encode(),
        }
        self.broker.append(TP("dead", 0), value, headers=tuple(told.items()))

    def join(self, node: str) -> None:
        self.placement.write(
            [
                NodeJoined(
                    node_id=node,
                    incarnation="i",
                    executor_id="e",
                    backend="virtual",
                    gpu_type="a100",
                    gpus=4,
                    cpus=8,
                    mem_gib=64,
                )
            ]
        )

    def enqueue(self, job: str) -> None:
        self.placement.write([JobEnqueued(job_id=job, tenant="red", submitted_at=1, spec=SPEC)])

    def run(
        self, job: str, gpus: tuple[int, ...] = (0, 1), node: str = "n1", attempt: int = 1
    ) -> str:
        lease = Allocation(rank=0, node_id=node, gpus=gpus, cpus=1, mem_gib=1)
        place = self.placement.write(
            [
                JobPlaced(
                    job_id=job,
                    tenant="red",
                    attempt=attempt,
                    allocations=(lease,),
                    waited_ms=1,
                    policy="fcfs",
                )
            ]
        )
        self.placement.write([JobStarted(job_id=job, tenant="red", attempt=attempt)])
        return place

    def release(self, job: str, place: str) -> None:
        self.placement.write(
            [
                AllocationReleased(
                    job_id=job,
                    attempt=1,
                    allocation_id=f"{place}/0",
                    node_id="n1",
                    reason="exited",
                    exit_code=0,
                )
            ]
        )

    def succeed(self, job: str) -> None:
        self.placement.write([JobSucceeded(job_id=job, tenant="red", attempt=1, gpu_s=1.5)])

    async def publish(self) -> None:
        source = Source(MemoryLog(self.broker), 1)
        await source.start()
        for batch in await source.poll(0.01, 10_000):
            for line in batch.events:
                if EVENTS[line.type].PUBLIC:
                    self.publish_one(f"{line.ledger}/{line.position}", line.type, line.raw)

    def publish_one(self, name: str, type_: str, data: bytes) -> None:
        self.raw("events", cloudevents.encode(id=name, source="/berth", type=type_, data=data))

    async def judge(self, database: str = "") -> VerifyReport:
        await self.publish()
        if not database:
            return await verify(logs(self.broker), None)
        await self.project(database)
        conn = await connect(database)
        try:
            return await verify(logs(self.broker), conn)
        finally:
            await conn.close()

    async def project(self, database: str) -> None:
        await migrate(database)
        conn = await connect(database)
        source = Source(MemoryLog(self.broker), 1, await cursor.read(conn))
        await source.start()
        if batches := await source.poll(0.01, 10_000):
            await project(conn, batches)
        await conn.close()


def event(kind: Event) -> bytes:
    return encode_event(kind)


async def test_an_honest_log_is_green(database: str) -> None:
    report = await World().judge(database)
    assert report.violations == [] and report.counts["commands"] == 3
    assert len(report.rules) == 9


async def test_a_cancelled_array_may_wait_for_the_last_of_its_jobs() -> None:
    world = World()
    world.array("a", 2)
    world.cancel("c9", "a")
    world.admission.write(
        [
            ArrayCancelRequested(job_id="a", command_id="c9"),
            JobCancelled(job_id="a.0", tenant="red"),
        ]
    )
    assert (await world.judge()).violations == []


@pytest.mark.parametrize("kind", [JobMigrated, JobResized])
async def test_a_job_may_stop_to_go_on_elsewhere(database: str, kind: type[Event]) -> None:
    world = World()
    place = world.run("j2")
    target = [{"rank": 0, "node_id": "n1", "gpus": [2, 3]}]
    how = {"reason": "drain", "from_nodes": ["n1"], "to_nodes": ["n1"]}
    if kind is JobResized:
        how = {"reason": "grow", "from_workers": 1, "to_workers": 1}
    common = {"job_id": "j2", "tenant": "red", "attempt": 1, "target": target}
    world.placement.write([kind.model_validate(common | how)])
    world.release("j2", place)
    world.placement.write([JobRequeued(job_id="j2", tenant="red", attempt=2, reason="migrated")])
    world.run("j2", (2, 3), attempt=2)
    assert (await world.judge(database)).violations == []


def a_move_of_a_job_that_waits(world: World) -> None:
    lease = Allocation(rank=0, node_id="n1", gpus=(0,))
    world.placement.write(
        [
            JobMigrated(
                job_id="j2",
                tenant="red",
                attempt=1,
                reason="drain",
                from_nodes=(),
                to_nodes=("n1",),
                target=(lease,),
            )
        ]
    )


def no_answer(world: World) -> None:
    world.command(
        "c9", SubmitJob(job_id="j9", tenant="red", pool="p", idempotency_key="9", spec=SPEC)
    )
    world.admission.inputs = {"commands-0": 5}
    world.admission.write([])


def two_answers(world: World) -> None:
    world.admission.write(
        [CommandRefused(command_id="c1", command_type="job.submit.v1", reason="late")]
    )


def a_strangers_answer(world: World) -> None:
    world.placement.write([CommandAccepted(command_id="c3", command_type="job.cancel.v1")])


def a_cancel_of_an_ended_job_without_answer(world: World) -> None:
    world.cancel("c9", "j1")
    read = len(world.broker.entries(TP("placement", 0)))
    world.admission.inputs |= {"placement-0": (read, read, f"placement-0-{read}")}
    world.admission.write([])


def a_cancelled_array_without_answer(world: World) -> None:
    world.array("a", 2)
    world.cancel("c9", "a")
    world.admission.write([ArrayCancelRequested(job_id="a", command_id="c9")])
    world.admission.write([JobCancelled(job_id=f"a.{n}", tenant="red") for n in range(2)])


def a_job_made_after_the_cancel_of_its_array(world: World) -> None:
    world.array("a", 2)
    world.cancel("c9", "a")
    world.admission.write([ArrayCancelRequested(job_id="a", command_id="c9")])
    world.defer("a", 2)


def an_array_cancelled_before_its_jobs(world: World) -> None:
    world.array("a", 2)
    world.cancel("c9", "a")
    world.admission.write(
        [
            ArrayCancelRequested(job_id="a", command_id="c9"),
            JobCancelled(job_id="a.0", tenant="red"),
            CommandAccepted(command_id="c9", command_type="job.cancel.v1", of="a"),
        ]
    )


def an_answer_to_nothing(world: World) -> None:
    world.admission.write([CommandAccepted(command_id="ghost", command_type="job.submit.v1")])


def a_lost_job(world: World) -> None:
    world.admission.write([JobAdmitted(job_id="j3", tenant="red", submitted_at=1, spec=SPEC)])
    world.placement.inputs = {"admission-0": (5, 5, "admission-0-5")}
    world.placement.write([])


def two_ends(world: World) -> None:
    world.succeed("j1")


def admission_ends_it(world: World) -> None:
    world.admission.write([JobRejected(job_id="j1", tenant="red", reason="late")])


def a_gap_in_the_attempts(world: World) -> None:
    place = world.run("j2")
    world.release("j2", place)
    world.placement.write([JobRequeued(job_id="j2", tenant="red", attempt=3, reason="preempted")])


def a_job_from_nowhere(world: World) -> None:
    world.enqueue("j8")


def a_gpu_over_capacity(world: World) -> None:
    world.run("j2", (0, 1))
    world.admit("c4", "j4")
    world.enqueue("j4")
    world.run("j4", (1, 2))


def a_gpu_that_is_not_there(world: World) -> None:
    world.run("j2", (3, 4))


def reused_before_its_release(world: World) -> None:
    world.run("j2")
    world.succeed("j2")


def released_twice(world: World) -> None:
    world.release("j1", world.place)


def on_a_lost_node(world: World) -> None:
    world.placement.write([NodeLost(node_id="n1", incarnation="i", reason="silent")])
    world.run("j2")


def on_no_node(world: World) -> None:
    world.run("j2", node="n7")


def a_dropped_poison(world: World) -> None:
    world.raw("commands", b"\xff")
    world.admission.inputs = {"commands-0": 5}
    world.admission.write([])


def a_good_record_rejected(world: World) -> None:
    world.reject(0, b"x")


def other_bytes_in_dead(world: World) -> None:
    world.broker.entries(TP("dead", 0)).clear()
    world.dead(3, b"other bytes")


def a_dead_letter_of_nothing(world: World) -> None:
    world.dead(2, b"x")


def an_event_that_no_ledger_has(world: World) -> None:
    world.publish_one("placement/0/99/0", "job.started.v1", b"{}")


def an_event_with_two_contents(world: World) -> None:
    world.publish_one("placement/0/1/0", "node.joined.v1", b'{"other": 1}')


def ready(world: World, allocation_id: str, job_id: str) -> None:
    said = ExecutorReported(
        executor_id="e", reports=(WorkerReady(allocation_id=allocation_id, job_id=job_id),)
    )
    world.raw(
        "reports",
        cloudevents.encode(
            id=f"ready-{allocation_id}-{job_id}", source="/test", type=said.TYPE, data=encode(said)
        ),
    )


def a_worker_of_no_allocation(world: World) -> None:
    ready(world, f"{world.place}/0", "j1")
    ready(world, "0/99/0/0", "j1")


def a_worker_of_another_job(world: World) -> None:
    ready(world, f"{world.place}/0", "j2")


DAMAGE: list[tuple[Callable[[World], None], str]] = [
    (no_answer, "no answer"),
    (two_answers, "answered 2x"),
    (a_strangers_answer, "is answered by admission"),
    (a_cancel_of_an_ended_job_without_answer, "job.cancel.v1 c9: no answer"),
    (a_cancelled_array_without_answer, "job.cancel.v1 c9: no answer"),
    (a_job_made_after_the_cancel_of_its_array, "a.2 was made after a was cancelled"),
    (an_array_cancelled_before_its_jobs, "a is answered while 1 of its jobs live"),
    (an_answer_to_nothing, "was never asked"),
    (a_lost_job, "admitted and then lost"),
    (two_ends, "succeeded and then succeeded"),
    (admission_ends_it, "not admission's to end"),
    (a_move_of_a_job_that_waits, "migrated cannot follow enqueued"),
    (a_gap_in_the_attempts, "attempt 3 follows 1"),
    (a_job_from_nowhere, "never admitted"),
    (a_worker_of_no_allocation, "0/99/0/0 was made ready for j1"),
    (a_worker_of_another_job, "was made ready for j2"),
    (a_gpu_over_capacity, "holds 2000 of 1000"),
    (a_gpu_that_is_not_there, "GPU 4 holds"),
    (reused_before_its_release, "still holds GPUs"),
    (released_twice, "released again"),
    (on_a_lost_node, "which is not there"),
    (on_no_node, "which is not there"),
    (a_dropped_poison, "without a word"),
    (a_good_record_rejected, "is a good record"),
    (other_bytes_in_dead, "its bytes differ"),
    (a_dead_letter_of_nothing, "in dead but not rejected"),
    (an_event_that_no_ledger_has, "what no ledger says"),
    (an_event_with_two_contents, "two contents"),
]


@pytest.mark.parametrize(("damage", "told"), DAMAGE, ids=lambda d: getattr(d, "__name__", ""))
async def test_each_damage_turns_it_red(damage: Callable[[World], None], told: str) -> None:
    world = World()
    damage(world)
    report = await world.judge()
    assert any(told in f"{v.what}" for v in report.violations), report.violations


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("UPDATE job_placement SET phase = 'running' WHERE job_id = 'j1'", "job_placement"),
        ("UPDATE job_placement SET gpu_ms = 7 WHERE job_id = 'j1'", "job_placement"),
        ("DELETE FROM job_admission WHERE job_id = 'j2'", "job_admission"),
        ("UPDATE allocation SET released_at = 0", "allocation"),
        ("UPDATE command SET accepted = false WHERE command_id = 'c1'", "command"),
        ("DELETE FROM dead_letter", "dead_letter"),
    ],
)
async def test_a_changed_row_turns_it_red(database: str, change: str, table: str) -> None:
    world = World()
    await world.publish()
    await world.project(database)
    conn = await connect(database)
    await conn.execute(change)
    report = await verify(logs(world.broker), conn)
    await conn.close()
    assert [v for v in report.violations if v.where.startswith(table)], report.violations


async def test_a_cut_chain_turns_it_red() -> None:
    world = World()
    world.placement.at -= 5_000
    world.placement.write([])
    report = await world.judge()
    assert any("time went back" in v.what for v in report.violations)


async def test_an_undeclared_input_turns_it_red() -> None:
    world = World()
    world.admission.inputs = {"commands-0": 4, "priority-0": (1, 1, "x")}
    world.admission.write([])
    report = await world.judge()
    assert any("reads priority-0" in v.what for v in report.violations)


async def test_what_was_acknowledged_and_is_not_there_turns_it_red() -> None:
    world = World()
    await world.publish()
    good = await verify(logs(world.broker), None, acked=["c1", "c2"])
    bad = await verify(logs(world.broker), None, acked=["c1", "lost"])
    assert [v.where for v in good.violations] == []
    assert [v.where for v in bad.violations] == ["lost"]
