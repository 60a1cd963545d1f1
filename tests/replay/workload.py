"""A seeded day of a small pool.

It has valid and invalid commands, preemption, cancellations, a lost node, and an elastic job that
grows when the others have gone and migrates when its node is drained.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from services.executor.core.virtual.inventory import InventoryNode
from shared.contracts.base import Command
from shared.contracts.job_commands import CancelJob, SetQuota, SubmitJob
from shared.contracts.job_spec import Elastic, Gang, JobSpec, Retry, Simulated
from shared.contracts.nodes import CordonNode, DrainNode, UncordonNode
from shared.contracts.pools import PoolConfigured
from tests.replay.cluster import LANE, Cluster
from tests.virtual_nodes import virtual_node

POOL = PoolConfigured(
    pool="virtual", partition=LANE, time_scale=60.0, lease_s=2.0, publish_predictions=True
)
TENANTS = ("ada", "bob", "cleo")
JOBS = 300
WOULD_WAIT_FOR_EVER = ("j75", "j220")
"""They need every GPU of a type, of which the elastic job, which grows last, holds one."""
END_MS = 600_000
"""Long after the last job has ended."""

Step = Callable[[Cluster], None]


def nodes() -> dict[str, InventoryNode]:
    shapes = [("a100", 4, 8), ("l40s", 4, 4)]
    return {
        (name := f"{kind}-{n}"): virtual_node(name, kind, gpus)
        for kind, count, gpus in shapes
        for n in range(count)
    }


def played(seed: int = 7, jobs: int = JOBS) -> Cluster:
    """Return the cluster after its day."""
    cluster = Cluster(POOL, TENANTS, nodes())
    begin = cluster.now
    for at, step in sorted(steps(random.Random(seed), jobs), key=lambda timed: timed[0]):
        cluster.run(begin + at)
        step(cluster)
    cluster.run(begin + END_MS)
    return cluster


def steps(chance: random.Random, jobs: int) -> Iterator[tuple[int, Step]]:
    """Yield the steps, each with its wall ms from the beginning."""
    commands: list[tuple[int, str, Command]] = [
        (500, "q1", SetQuota(tenant="bob", guaranteed_gpus=8, borrow_gpus=8)),
        (29_000, "q2", SetQuota(tenant="bob", guaranteed_gpus=8)),
        (9_000, "n1", CordonNode(node_id="a100-1", reason="fan")),
        (11_000, "n2", DrainNode(node_id="l40s-2", reason="disk")),
        (16_000, "n3", UncordonNode(node_id="a100-1")),
        (17_000, "n4", UncordonNode(node_id="l40s-2")),
        (18_000, "n5", CordonNode(node_id="no-such-node")),
        (5_000, "array", an_array()),
        (8_000, "stop-array", CancelJob(job_id="array")),
        (20_000, "elastic", an_elastic_job()),
        *((150_000, f"clear-{job}", CancelJob(job_id=job)) for job in WOULD_WAIT_FOR_EVER),
    ]
    for number in range(jobs):
        at = 1_000 + int(chance.random() * 25_000)
        job = submission(chance, number)
        commands.append((at, f"c{number}", job))
        if number % 11 == 0:
            commands.append((at + 200, f"again{number}", job))
        if number % 13 == 0:
            late = at + chance.choice((10, 1_500, 60_000))
            commands.append((late, f"stop{number}", CancelJob(job_id=f"j{number}")))
    for at, id, message in commands:
        yield at, lambda cluster, message=message, id=id: send(cluster, id, message)  # type: ignore[misc]
    yield 6_000, lambda cluster: append_bytes(cluster, b"\xff no command")
    yield 13_000, stop_heartbeats
    yield 200_000, drain_elastic


def submission(chance: random.Random, number: int) -> SubmitJob:
    spec = JobSpec(
        name=f"job {number}",
        gang=Gang(
            workers=chance.choice((1, 1, 1, 2, 4, 40 if number % 60 == 59 else 3)),
            gpus_per_worker=chance.choice((0.25, 0.5, 1, 1, 2, 4, 8)),
        ),
        gpu_types=chance.choice(((), (), ("a100",), ("l40s",))),
        priority_class=chance.choice(("high", "normal", "normal", "low")),
        spot=chance.random() < 0.1,
        checkpoint_interval_s=60.0,
        depends_on=(f"j{number - chance.randrange(1, 9)}",) if number % 10 == 9 else (),
        retry=Retry(max_attempts=chance.choice((1, 1, 3)), backoff_s=30.0),
        simulated=Simulated(
            duration_s=round(chance.expovariate(1 / 120), 1),
            exit_code=1 if chance.random() < 0.08 else 0,
        ),
    )
    return SubmitJob(
        job_id=f"j{number}",
        tenant=chance.choice((*TENANTS, *TENANTS, *TENANTS, "eve")),
        pool=POOL.pool,
        idempotency_key=f"k{number}",
        array_size=3 if number % 50 == 5 else 1,
        spec=spec,
    )


def an_array() -> SubmitJob:
    """Cancelled by one command while some of its jobs run and others wait."""
    spec = JobSpec(name="sweep", simulated=Simulated(duration_s=600.0))
    return SubmitJob(
        job_id="array",
        tenant="cleo",
        pool=POOL.pool,
        idempotency_key="array",
        array_size=40,
        spec=spec,
    )


def an_elastic_job() -> SubmitJob:
    spec = JobSpec(
        name="elastic",
        gang=Gang(workers=1, gpus_per_worker=1),
        gpu_types=("l40s",),
        priority_class="high",
        elastic=Elastic(min_workers=1, max_workers=12),
        checkpoint_interval_s=60.0,
        walltime_s=60_000.0,
        simulated=Simulated(duration_s=60_000.0, restart_s=30.0),
    )
    return SubmitJob(
        job_id="elastic", tenant="ada", pool=POOL.pool, idempotency_key="elastic", spec=spec
    )


def drain_elastic(cluster: Cluster) -> None:
    """The node of the elastic job is drained when there is room on the others."""
    (node_id, *_) = cluster.lanes["placement"].state.jobs["elastic"].nodes
    cluster.command("n6", DrainNode(node_id=node_id, reason="moves house"))


def send(cluster: Cluster, id: str, message: Command) -> None:
    cluster.command(id, message)


def append_bytes(cluster: Cluster, value: bytes) -> None:
    cluster.append_bytes(value)


def stop_heartbeats(cluster: Cluster) -> None:
    """Report a node as silent, as the watch of heartbeats does."""
    node = cluster.lanes["placement"].state.board.nodes["a100-0"]
    cluster.report_silence(node.node_id, node.incarnation, 4.0)
