"""A pool under random commands and faults: `berth verify` finds no violation.

The live deciders and a virtual executor over the in-memory log. At the end of each life all nodes
are well again, and no job waits for ever.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from services.executor.core.virtual.inventory import InventoryNode
from services.placement.core.pool.shape import GPU
from shared.bus.logs.memory import MemoryLog
from shared.contracts.job_commands import CancelJob, SetQuota, SubmitJob
from shared.contracts.job_spec import Elastic, Gang, JobSpec, Retry, Simulated
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from shared.contracts.pools import PoolConfigured
from shared.ledger.partition import TP
from shared.verify.reading import InstallationLog
from shared.verify.run import verify
from simulator.engine.publishing import publish
from tests.fuzz.tally import tally
from tests.replay.cluster import LANE, Cluster
from tests.replay.golden import state_hash
from tests.virtual_nodes import virtual_node

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("BERTH_FUZZ_LIVES", "40"))
STEPS = 40
TENANTS = ("ada", "bob")
HOUR_MS = 3_600_000
NOT_DONE_HERE = {"dead letters equal what was rejected"}
"""The publisher's work, of which the engine does only the events."""
WANTED = {
    "job.succeeded.v1",
    "job.failed.v1",
    "job.cancelled.v1",
    "job.rejected.v1",
    "job.deferred.v1",
    "job.preempted.v1",
    "job.requeued.v1",
    "job.attempt-failed.v1",
    "job.readmitted.v1",
    "array.accepted.v1",
    "array.cancel-requested.v1",
    "node.lost.v1",
    "input.rejected.v1",
    "command.refused.v1",
}
SEEN: Counter[str] = Counter()
"""Types of the events of all lives: a machine that never meets a preemption proves little."""

node_ids = st.sampled_from(["a100-0", "a100-1", "l40s-0"])
tenants = st.sampled_from([*TENANTS, *TENANTS, "eve"])
gangs = st.builds(
    Gang,
    workers=st.sampled_from([1, 1, 2, 3, 40]),
    gpus_per_worker=st.sampled_from([0, 0.25, 0.5, 1, 1, 2, 4]),
)
works = st.builds(
    Simulated,
    duration_s=st.sampled_from([0.0, 0.001, 5.0, 60.0, 900.0]),
    exit_code=st.sampled_from([0, 0, 0, 1, 255]),
    restart_s=st.sampled_from([0.0, 10.0]),
)
pools = st.builds(
    PoolConfigured,
    pool=st.just("virtual"),
    partition=st.just(LANE),
    time_scale=st.just(60.0),
    lease_s=st.just(2.0),
    queue_mode=st.sampled_from(["skip", "strict", "easy"]),
    preemption=st.sampled_from(["class", "ranked"]),
    min_residency_s=st.sampled_from([0.0, 300.0]),
    base_policy=st.sampled_from(["fair_share", "fcfs"]),
    settle_ms=st.sampled_from([0, 50]),
    reserve_after_s=st.sampled_from([None, 60.0]),
    spot_gpus=st.sampled_from([None, 2.0]),
)


@st.composite
def specs(draw: st.DrawFn, known: list[str]) -> JobSpec:
    gang = draw(gangs)
    elastic = Elastic(min_workers=1, max_workers=gang.workers + 2) if draw(st.booleans()) else None
    return JobSpec(
        name="job",
        gang=gang,
        gpu_types=draw(st.sampled_from([(), (), ("a100",), ("l40s",), ("h100",)])),
        priority_class=draw(st.sampled_from(["high", "normal", "low"])),
        preemptible=draw(st.booleans()),
        spot=draw(st.sampled_from([False, False, True])),
        checkpoint_interval_s=draw(st.sampled_from([None, 30.0])),
        walltime_s=draw(st.sampled_from([None, 60.0, 1000.0])),
        elastic=elastic,
        depends_on=tuple(draw(st.lists(st.sampled_from([*known, "nobody"]), max_size=2))),
        retry=Retry(max_attempts=draw(st.sampled_from([1, 3])), backoff_s=30.0),
        simulated=draw(works),
    )


class Life(RuleBasedStateMachine):
    """Commands come with ids that are counted, so that a failure reads as a story."""

    jobs: Bundle[SubmitJob] = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster
        self.made: list[str] = []
        self.ids: dict[str, str] = {}
        """Id of the first command of each job."""
        self.sent = 0

    @initialize(pool=pools)
    def opens(self, pool: PoolConfigured) -> None:
        self.cluster = Cluster(pool, TENANTS, nodes())
        self.cluster.run(self.cluster.now + 10_000)

    def send(self, command: Any, id: str = "") -> str:
        self.sent += 1
        id = id or f"c{self.sent}"
        self.cluster.command(id, command)
        return id

    @rule(target=jobs, data=st.data(), tenant=tenants, size=st.sampled_from([1, 1, 1, 3]))
    def submit(self, data: st.DataObject, tenant: str, size: int) -> Any:
        return self.submitted(data.draw(specs(self.made[-5:])), tenant, size)

    def submitted(self, spec: JobSpec, tenant: str, size: int) -> SubmitJob:
        job_id = f"j{len(self.made)}"
        self.made += [job_id] if size == 1 else [job_id, f"{job_id}.0"]
        command = SubmitJob(
            job_id=job_id,
            tenant=tenant,
            pool="virtual",
            idempotency_key=f"k-{job_id}",
            array_size=size,
            spec=spec,
        )
        self.ids[job_id] = self.send(command)
        return command

    @rule(
        target=jobs,
        low=st.booleans(),
        gpus=st.sampled_from([1, 2]),
        exit_code=st.sampled_from([0, 1]),
        size=st.sampled_from([1, 2]),
    )
    def rush(self, low: bool, gpus: int, exit_code: int, size: int) -> Any:
        """The pool fills up with long jobs that may be stopped, and some of them fail."""
        spec = JobSpec(
            name="long",
            gang=Gang(gpus_per_worker=gpus),
            checkpoint_interval_s=30.0,
            priority_class="low" if low else "normal",
            retry=Retry(max_attempts=2),
            simulated=Simulated(duration_s=900.0, exit_code=exit_code),
        )
        commands = [self.submitted(spec, "ada", size) for _ in range(5)]
        self.cluster.run(self.cluster.now + 3_000)
        return multiple(*commands)

    @rule(command=jobs, pool=st.sampled_from(["virtual", "moon"]))
    def submit_again(self, command: SubmitJob, pool: str) -> None:
        self.send(command.model_copy(update={"pool": pool}))

    @rule(command=jobs, name=st.sampled_from(["other", "job"]))
    def submit_another_under_the_same_key(self, command: SubmitJob, name: str) -> None:
        self.send(
            command.model_copy(update={"spec": command.spec.model_copy(update={"name": name})})
        )

    @rule(command=jobs)
    def deliver_again(self, command: SubmitJob) -> None:
        self.send(command, id=self.ids[command.job_id])

    @rule(command=jobs, other=jobs)
    def reuse_an_id_with_other_content(self, command: SubmitJob, other: SubmitJob) -> None:
        self.send(other, id=self.ids[command.job_id])

    @rule(
        command=jobs,
        tenant=st.sampled_from([None, "ada", "bob"]),
        index=st.sampled_from(["", ".1"]),
    )
    def cancel(self, command: SubmitJob, tenant: str | None, index: str) -> None:
        self.send(CancelJob(job_id=command.job_id + index, tenant=tenant))

    @rule(target=jobs, delay_ms=st.sampled_from([0, 3_000]))
    def cancel_an_array(self, delay_ms: int) -> Any:
        """Some of its jobs run, some wait; the others are not created yet."""
        spec = JobSpec(
            name="array",
            gang=Gang(gpus_per_worker=1),
            simulated=Simulated(duration_s=900.0, exit_code=0),
        )
        command = self.submitted(spec, "ada", 3)
        self.cluster.run(self.cluster.now + delay_ms)
        self.send(CancelJob(job_id=command.job_id, tenant="ada"))
        return command

    @rule(ms=st.sampled_from([0, 20, 100, 1_000, 5_000, 20_000, 120_000]))
    def wait(self, ms: int) -> None:
        self.cluster.run(self.cluster.now + ms)

    @rule(node_id=node_ids)
    def lose(self, node_id: str) -> None:
        gone = self.cluster.fail(node_id)
        if gone:
            self.cluster.report_silence(node_id, gone, 4.0)

    @rule(node_id=node_ids)
    def call_a_living_node_silent(self, node_id: str) -> None:
        """Heartbeats were lost, the node was not; an old incarnation has no effect."""
        board = self.cluster.lanes["placement"].state.board.nodes
        incarnation = board[node_id].incarnation if node_id in board else "long ago"
        self.cluster.report_silence(node_id, incarnation, 4.0)

    @rule(node_id=node_ids)
    def repair(self, node_id: str) -> None:
        self.cluster.repair(node_id)

    @rule(
        node_id=st.one_of(node_ids, st.just("moon")),
        order=st.sampled_from([CordonNode, DrainNode, UncordonNode]),
    )
    def order(self, node_id: str, order: Any) -> None:
        self.send(order(node_id=node_id))

    @rule(
        tenant=tenants,
        guaranteed=st.sampled_from([0, 2, 100]),
        borrow=st.sampled_from([None, 0, 4]),
    )
    def set_quota(self, tenant: str, guaranteed: float, borrow: float | None) -> None:
        self.send(SetQuota(tenant=tenant, guaranteed_gpus=guaranteed, borrow_gpus=borrow))

    @rule(value=st.sampled_from([b"", b"\xff", b"{}", b"[" * 9000]))
    def append_bytes(self, value: bytes) -> None:
        self.cluster.append_bytes(value)

    @invariant()
    def the_executor_holds_no_more_than_there_is(self) -> None:
        if not hasattr(self, "cluster"):
            return
        for node in self.cluster.lanes["placement"].state.board.nodes.values():
            assert len(node.free) == node.kind.gpus
            assert all(0 <= free <= GPU for free in node.free), node
            assert node.cpu_free >= 0 <= node.mem_free, node

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.heal()
            self.judge()

    def heal(self) -> None:
        """Repair every node and lift every quota: each waiting job gets its turn."""
        for node_id in ("a100-0", "a100-1", "l40s-0"):
            self.cluster.repair(node_id)
            self.send(UncordonNode(node_id=node_id))
        for tenant in TENANTS:
            self.send(SetQuota(tenant=tenant, guaranteed_gpus=1000, spot_gpus=1000))
        self.cluster.run(self.cluster.now + HOUR_MS)
        placement, admission = (
            self.cluster.lanes[name].state for name in ("placement", "admission")
        )
        assert placement.jobs == {}, "jobs that never end"
        assert admission.deferred == {}, "jobs that never enter"

    def judge(self) -> None:
        tally("lives of a pool")
        tally("commands within them", self.sent)
        broker = self.cluster.broker
        publish(broker)
        logs = InstallationLog(MemoryLog(broker), 1, quiet_s=0.0, catch_up_s=0.0)
        report = asyncio.run(verify(logs, None))
        assert [item for item in report.violations if item.rule not in NOT_DONE_HERE] == []
        for cell in self.cluster.lanes.values():
            state = cell.decider.initial(LANE)
            for call in cell.calls:
                for fact in call.facts(cell.ledger):
                    cell.decider.evolve(state, fact)
                    SEEN[fact.event.TYPE] += 1
            assert state_hash(state) == state_hash(cell.state), f"{cell.ledger} is not its own fold"
        assert broker.entries(TP("events", LANE))


def nodes() -> dict[str, InventoryNode]:
    shapes = [("a100-0", "a100", 4), ("a100-1", "a100", 4), ("l40s-0", "l40s", 2)]
    return {name: virtual_node(name, kind, gpus) for name, kind, gpus in shapes}


def test_whatever_happens_to_jobs_and_nodes_every_rule_holds() -> None:
    SEEN.clear()
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            derandomize="BERTH_FUZZ_LIVES" not in os.environ,
            print_blob=True,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert WANTED - SEEN.keys() == set()
