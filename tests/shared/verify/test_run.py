"""Verify is green on an intact log, and red after each damage that crosses several topics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.admission import (
    ArrayAccepted,
    ArrayCancelRequested,
    JobAdmitted,
    JobDeferred,
    JobRejected,
)
from shared.contracts.attempts import (
    AllocationReleased,
    JobCancelled,
    JobMigrated,
    JobRequeued,
    JobResized,
    JobStarted,
    JobSucceeded,
)
from shared.contracts.base import EVENTS, Event
from shared.contracts.codec import encode
from shared.contracts.command_answers import CommandAccepted, CommandRefused
from shared.contracts.endpoints import EndpointConfigured, TokenBudget
from shared.contracts.job_commands import CancelJob, SubmitJob
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.llm import LlmRequestFinished, LlmRequestQueued, LlmRequestStarted
from shared.contracts.nodes import NodeLost
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced
from shared.contracts.rejected import InputRejected
from shared.contracts.reports import ExecutorReported, WorkerReady
from shared.ledger import cloudevents
from shared.ledger.partition import TP
from shared.projections import cursor
from shared.projections.database import connect
from shared.projections.project import project
from shared.projections.source import Source
from shared.verify.projected import PROJECTED, check_projected
from shared.verify.reading import InstallationLog
from shared.verify.report import VerifyReport
from shared.verify.run import verify
from tests.shared.ledger_events import node_joined

SPEC = JobSpec(name="train", gang=Gang(gpus_per_worker=2))
BAD = b"not json"


def installation(broker: MemoryBroker) -> InstallationLog:
    return InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=0.5)


class World:
    """A small installation by hand: one job that ran, one that waits, one undecodable record."""

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
        self.position = self.run("j1")
        self.release("j1", self.position)
        self.succeed("j1")
        self.throttle = LedgerWriter(self.broker, "throttle")
        self.serve("r1", 7)

    def serve(self, request_id: str, output_tokens: int) -> None:
        named = {"request_id": request_id, "tenant": "red"}
        counts = {"prompt_tokens": 5, "max_output_tokens": 10}
        self.throttle.write([LlmRequestQueued(**named, endpoint="chat", **counts)])
        self.throttle.write([LlmRequestStarted(**named)])
        finished = LlmRequestFinished(**named, prompt_tokens=5, output_tokens=output_tokens)
        self.throttle.write([finished])

    def array(self, array_id: str, size: int) -> None:
        self.command(
            "c8",
            SubmitJob(
                job_id=array_id,
                tenant="red",
                pool="p",
                idempotency_key=array_id,
                array_size=size,
                spec=SPEC,
            ),
        )
        self.admission.write(
            [
                CommandAccepted(command_id="c8", command_type="job.submit.v1", of=array_id),
                ArrayAccepted(job_id=array_id, tenant="red", array_size=size, spec=SPEC),
            ]
        )
        for index in range(size):
            self.defer(array_id, index)

    def defer(self, array_id: str, index: int) -> None:
        self.admission.write(
            [
                JobDeferred(
                    job_id=f"{array_id}.{index}",
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
        headers = {
            "berth-topic": b"commands",
            "berth-partition": b"0",
            "berth-offset": str(offset).encode(),
        }
        self.broker.append(TP("dead", 0), value, headers=tuple(headers.items()))

    def join(self, node: str) -> None:
        self.placement.write([node_joined(node, gpus=4)])

    def enqueue(self, job: str) -> None:
        self.placement.write([JobEnqueued(job_id=job, tenant="red", submitted_at=1, spec=SPEC)])

    def run(
        self, job: str, gpus: tuple[int, ...] = (0, 1), node: str = "n1", attempt: int = 1
    ) -> str:
        lease = Allocation(rank=0, node_id=node, gpus=gpus, cpus=1, mem_gib=1)
        position = self.placement.write(
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
        return position

    def release(self, job: str, position: str) -> None:
        self.placement.write(
            [
                AllocationReleased(
                    job_id=job,
                    attempt=1,
                    allocation_id=f"{position}/0",
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
            for event in batch.events:
                if EVENTS[event.type].PUBLIC:
                    self.publish_one(event.id, event.type, event.raw)

    def publish_one(self, name: str, type_: str, data: bytes) -> None:
        self.raw("events", cloudevents.encode(id=name, source="/berth", type=type_, data=data))

    async def judge(self, database: str = "") -> VerifyReport:
        await self.publish()
        if not database:
            return await verify(installation(self.broker), None)
        await self.project(database)
        conn = await connect(database)
        try:
            return await verify(installation(self.broker), conn)
        finally:
            await conn.close()

    async def project(self, database: str) -> None:
        conn = await connect(database)
        source = Source(MemoryLog(self.broker), 1, await cursor.read(conn))
        await source.start()
        if batches := await source.poll(0.01, 10_000):
            await project(conn, batches)
        await conn.close()


async def test_an_intact_log_is_green(database: str) -> None:
    report = await World().judge(database)
    assert report.violations == [] and report.counts["commands"] == 3
    assert len(report.rules) == 15


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
async def test_a_job_may_stop_to_continue_elsewhere(database: str, kind: type[Event]) -> None:
    world = World()
    position = world.run("j2")
    target = [{"rank": 0, "node_id": "n1", "gpus": [2, 3]}]
    how: dict[str, object] = {"reason": "drain", "from_nodes": ["n1"], "to_nodes": ["n1"]}
    if kind is JobResized:
        how = {"reason": "grow", "from_workers": 1, "to_workers": 1}
    common: dict[str, object] = {"job_id": "j2", "tenant": "red", "attempt": 1, "target": target}
    world.placement.write([kind.model_validate(common | how)])
    world.release("j2", position)
    world.placement.write([JobRequeued(job_id="j2", tenant="red", attempt=2, reason="migrated")])
    world.run("j2", (2, 3), attempt=2)
    assert (await world.judge(database)).violations == []


def a_migration_of_a_waiting_job(world: World) -> None:
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


def an_answer_of_another_service(world: World) -> None:
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


def a_job_created_after_the_cancel_of_its_array(world: World) -> None:
    world.array("a", 2)
    world.cancel("c9", "a")
    world.admission.write([ArrayCancelRequested(job_id="a", command_id="c9")])
    world.defer("a", 2)


def a_cancel_answered_before_its_jobs_ended(world: World) -> None:
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


def an_end_by_admission_of_an_admitted_job(world: World) -> None:
    world.admission.write([JobRejected(job_id="j1", tenant="red", reason="late")])


def a_gap_in_the_attempts(world: World) -> None:
    position = world.run("j2")
    world.release("j2", position)
    world.placement.write([JobRequeued(job_id="j2", tenant="red", attempt=3, reason="preempted")])


def a_job_without_admission(world: World) -> None:
    world.enqueue("j8")


def a_gpu_over_capacity(world: World) -> None:
    world.run("j2", (0, 1))
    world.admit("c4", "j4")
    world.enqueue("j4")
    world.run("j4", (1, 2))


def a_gpu_index_beyond_the_node(world: World) -> None:
    world.run("j2", (3, 4))


def an_end_before_the_release(world: World) -> None:
    world.run("j2")
    world.succeed("j2")


def released_twice(world: World) -> None:
    world.release("j1", world.position)


def on_a_lost_node(world: World) -> None:
    world.placement.write([NodeLost(node_id="n1", incarnation="i", reason="silent")])
    world.run("j2")


def on_no_node(world: World) -> None:
    world.run("j2", node="n7")


def an_undecodable_record_without_rejection(world: World) -> None:
    world.raw("commands", b"\xff")
    world.admission.inputs = {"commands-0": 5}
    world.admission.write([])


def a_rejected_valid_record(world: World) -> None:
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
    reported = ExecutorReported(
        executor_id="e", reports=(WorkerReady(allocation_id=allocation_id, job_id=job_id),)
    )
    world.raw(
        "reports",
        cloudevents.encode(
            id=f"ready-{allocation_id}-{job_id}",
            source="/test",
            type=reported.TYPE,
            data=encode(reported),
        ),
    )


def a_worker_of_no_allocation(world: World) -> None:
    ready(world, f"{world.position}/0", "j1")
    ready(world, "0/99/0/0", "j1")


def a_worker_of_another_job(world: World) -> None:
    ready(world, f"{world.position}/0", "j2")


def an_llm_request_without_reservation(world: World) -> None:
    world.throttle.write([LlmRequestStarted(request_id="r2", tenant="red")])


def an_llm_request_above_its_reservation(world: World) -> None:
    world.serve("r2", 11)


def an_llm_budget_that_is_passed(world: World) -> None:
    budget = TokenBudget(holder="tenant", unit="tokens", limit=20)
    world.throttle.write([EndpointConfigured(endpoint="chat", partition=0, budgets=(budget,))])
    world.serve("r2", 10)
    world.serve("r3", 10)


DAMAGE: list[tuple[Callable[[World], None], str]] = [
    (no_answer, "no answer"),
    (two_answers, "has 2 answers"),
    (an_answer_of_another_service, "must be answered by admission"),
    (a_cancel_of_an_ended_job_without_answer, "job.cancel.v1 c9: no answer"),
    (a_cancelled_array_without_answer, "job.cancel.v1 c9: no answer"),
    (a_job_created_after_the_cancel_of_its_array, "a.2 was created after a was cancelled"),
    (
        a_cancel_answered_before_its_jobs_ended,
        "cancel of a was answered before 1 of its jobs ended",
    ),
    (an_answer_to_nothing, "was never sent"),
    (a_lost_job, "was admitted and never enqueued"),
    (two_ends, "succeeded after succeeded"),
    (an_end_by_admission_of_an_admitted_job, "was ended by admission after it was admitted"),
    (a_migration_of_a_waiting_job, "migrated cannot follow enqueued"),
    (a_gap_in_the_attempts, "attempt 3 follows 1"),
    (a_job_without_admission, "was enqueued and never admitted"),
    (a_worker_of_no_allocation, "0/99/0/0 is ready for j1 but was not placed"),
    (a_worker_of_another_job, "is ready for j2 but was not placed"),
    (a_gpu_over_capacity, "has 2000 of 1000 milli-GPU in use"),
    (a_gpu_index_beyond_the_node, "GPU 4 has"),
    (an_end_before_the_release, "before all its GPUs are released"),
    (released_twice, "released again"),
    (on_a_lost_node, "which is not a live node"),
    (on_no_node, "which is not a live node"),
    (an_undecodable_record_without_rejection, "was consumed and not rejected"),
    (a_rejected_valid_record, "is a valid record"),
    (other_bytes_in_dead, "or with other bytes"),
    (a_dead_letter_of_nothing, "in the topic dead but was not rejected"),
    (an_event_that_no_ledger_has, "is in events but in no ledger"),
    (an_event_with_two_contents, "with two contents"),
    (an_llm_request_without_reservation, "r2 was started without a reservation"),
    (an_llm_request_above_its_reservation, "r2: 11 output tokens, 10 were reserved"),
    (an_llm_budget_that_is_passed, "budget of 20 tokens of tenant red is passed by 10"),
]


@pytest.mark.parametrize(("damage", "detail"), DAMAGE, ids=lambda d: getattr(d, "__name__", ""))
async def test_each_damage_is_reported(damage: Callable[[World], None], detail: str) -> None:
    world = World()
    damage(world)
    report = await world.judge()
    assert any(detail in v.detail for v in report.violations), report.violations


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("UPDATE job_placement SET phase = 'running' WHERE job_id = 'j1'", "job_placement"),
        ("UPDATE job_placement SET gpu_ms = 7 WHERE job_id = 'j1'", "job_placement"),
        ("DELETE FROM job_admission WHERE job_id = 'j2'", "job_admission"),
        ("UPDATE allocation SET released_at = 0", "allocation"),
        ("UPDATE command SET accepted = false WHERE command_id = 'c1'", "command"),
        ("DELETE FROM dead_letter", "dead_letter"),
        ("UPDATE llm_request SET output_tokens = 8", "llm_request"),
        ("DELETE FROM llm_tenant", "llm_tenant"),
        ("UPDATE llm_usage SET cost = 1", "llm_usage"),
        ("INSERT INTO llm_open VALUES ('0/r9', 0, 'r9', 'red', 1, 0, false)", "llm_open"),
    ],
)
async def test_a_changed_row_is_reported(database: str, change: str, table: str) -> None:
    world = World()
    await world.publish()
    await world.project(database)
    conn = await connect(database)
    await conn.execute(change)
    report = await verify(installation(world.broker), conn)
    await conn.close()
    assert [v for v in report.violations if v.position.startswith(table)], report.violations


@pytest.mark.parametrize("is_projecting", [True, False])
async def test_a_projector_that_is_behind_is_reported(
    database: str, is_projecting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_projected, "__kwdefaults__", {"unmoved_s": 0.3, "most_s": 9.0})
    world = World()
    await world.publish()
    await world.project(database)
    conn = await connect(database)
    whole = await verify(installation(world.broker), conn, is_projecting=is_projecting)
    assert whole.ok and (PROJECTED in whole.rules) is is_projecting
    world.placement.write([])
    report = await verify(installation(world.broker), conn, is_projecting=is_projecting)
    await conn.close()
    assert [v.position for v in report.violations] == ["placement/0"] * is_projecting


async def test_a_decreasing_time_is_reported() -> None:
    world = World()
    world.placement.at -= 5_000
    world.placement.write([])
    report = await world.judge()
    assert any("time went back" in v.detail for v in report.violations)


async def test_an_undeclared_input_is_reported() -> None:
    world = World()
    world.admission.inputs = {"commands-0": 4, "priority-0": (1, 1, "x")}
    world.admission.write([])
    report = await world.judge()
    assert any("undeclared input priority-0" in v.detail for v in report.violations)


async def test_a_lost_acknowledged_command_is_reported() -> None:
    world = World()
    await world.publish()
    good = await verify(installation(world.broker), None, acked=["c1", "c2"])
    bad = await verify(installation(world.broker), None, acked=["c1", "lost"])
    assert [v.position for v in good.violations] == []
    assert [v.position for v in bad.violations] == ["lost"]


async def test_what_retention_has_removed_is_no_violation() -> None:
    world = World()
    await world.publish()
    requests = TP("llm.requests", 0)
    for _ in range(3):
        world.broker.append(requests, b"prompt")
    world.throttle.inputs = {"llm.requests-0": 3}
    answered = CommandAccepted(command_id="x", command_type="llm.serve.v1", of="r")
    rejected = InputRejected(topic="llm.requests", partition=0, offset=1, reason="bad", sha256="")
    world.throttle.write([answered, rejected])
    damaged = await verify(installation(world.broker), None)
    assert len(damaged.violations) >= 3
    for topic in ("llm.requests", "events", "dead"):
        world.broker.trim(TP(topic, 0), len(world.broker.entries(TP(topic, 0))))
    report = await verify(installation(world.broker), None)
    assert report.violations == []
    assert report.counts["records of llm.requests that were removed unread"] == 3
