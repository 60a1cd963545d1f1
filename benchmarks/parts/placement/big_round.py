"""One placement round of 1,250 nodes x 8 GPUs with 1,000 waiting jobs, beside its floors.

The floor of greedy is one pass over the queue without a search. The floor of CP-SAT is building the
model and reading greedy's plan back from it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from benchmarks.parts.command import Json
from services.placement.core.decide import Placement
from services.placement.core.pool.state import Pool
from services.placement.core.pool.trial import Trial
from services.placement.core.round.greedy import GREEDY, plan
from services.placement.core.round.plan import Plan
from services.placement.core.round.view import View, view_of
from services.placement.core.solver.export import instance_of
from services.placement.core.solver.solve import solve
from shared.contracts.base import Event
from shared.contracts.job_spec import Gang, JobSpec
from shared.contracts.nodes import NodeJoined
from shared.contracts.placement import Allocation, JobEnqueued, JobPlaced, RanksNoted
from shared.contracts.pools import PoolConfigured
from shared.contracts.ranking import Ranked
from shared.ledger.decider import Fact
from simulator.workload.rows import make_gang
from simulator.workload.synthetic import GPU_SHARES

NODES, GPUS, WAITING = 1250, 8, 1000
BUSY = 0.95
"""Share of the GPUs that running jobs use."""
RANKED = 512
TIMES = 7
AT = 1_700_000_000_000


def big_round(work: float, seed: int = 0) -> Json:
    """Return medians of CPU ms, and the improvement of CP-SAT over greedy's plan within `work`."""
    pool = make_pool(seed)
    view = view_of(pool, AT)
    proposal = plan(view, GREEDY)
    greedy_ms = median_ms(lambda: plan(view_of(pool, AT), GREEDY))
    floor_ms = median_ms(lambda: take_plan(view, proposal))
    export_ms = median_ms(lambda: instance_of(view, proposal))
    instance = instance_of(view, proposal)
    began_s = time.process_time()
    solved = solve(instance, work)
    cpsat_ms = (time.process_time() - began_s) * 1000
    return {
        "nodes": NODES,
        "gpus": NODES * GPUS,
        "waiting": WAITING,
        "free_gpus": sum(pool.board.free_gpus.values()),
        "started_by_greedy": len(proposal.assignments),
        "greedy_ms": greedy_ms,
        "greedy_floor_ms": floor_ms,
        "export_ms": export_ms,
        "requests": len(instance.requests),
        "classes": len(instance.classes),
        "cpsat_ms": round(cpsat_ms, 1),
        "cpsat_floor_ms": median_ms(lambda: solve(instance, 0.0), 3),
        "status": solved.status,
        "improvement": round((solved.objective - solved.greedy) / max(solved.greedy, 1), 6),
        "gap_to_bound": round((solved.bound - solved.objective) / max(solved.bound, 1), 6),
        "more_jobs_started": len(solved.plan.starts) - len(instance.greedy.starts),
    }


def median_ms(work: Callable[[], object], times: int = TIMES) -> float:
    spent_ms = []
    for _ in range(times):
        began_s = time.process_time()
        work()
        spent_ms.append((time.process_time() - began_s) * 1000)
    return round(sorted(spent_ms)[times // 2], 2)


def take_plan(view: View, proposal: Plan) -> None:
    """Take the slots of a plan in one pass over the ranked queue, without a search."""
    trial = Trial(view.board)
    slots = {assignment.job.job_id: assignment.slots for assignment in proposal.assignments}
    for job in GREEDY.rank(view):
        trial.take(slots.get(job.job_id, ()))
    trial.rollback()


def make_pool(seed: int) -> Pool:
    """Return a pool with scattered free GPUs, and a queue of gangs of the sizes of Venus."""
    draw = random.Random(seed)
    builder = PoolBuilder()
    builder.apply(PoolConfigured(partition=0, pool="p", solver="cpsat"))
    for number in range(NODES):
        builder.apply(joined(number))
    for number in range(NODES):
        builder.fill(number, draw)
    for number in range(WAITING):
        builder.submit(f"wait-{number:04d}", draw)
    ranked = tuple(Ranked(job_id=f"wait-{n:04d}", score=float(-n)) for n in range(RANKED))
    builder.apply(RanksNoted(pool="p", base_policy="sjf", ranked_at=AT, ranked=ranked))
    return builder.pool


def joined(number: int) -> NodeJoined:
    return NodeJoined(
        node_id=f"n{number:04d}",
        incarnation="i",
        executor_id="e",
        backend="virtual",
        gpu_type="a100",
        gpus=GPUS,
        cpus=128,
        mem_gib=1024,
        rack=f"r{number // 32}",
    )


class PoolBuilder:
    """A pool that is built event by event through the live `evolve`."""

    def __init__(self) -> None:
        self.decider = Placement()
        self.pool = self.decider.initial(0)
        self.seq = 0

    def apply(self, event: Event) -> None:
        self.seq += 1
        self.decider.evolve(self.pool, Fact(event, "placement", 0, self.seq, 0, AT))

    def fill(self, number: int, draw: random.Random) -> None:
        """Start jobs of 1 to 8 GPUs on a node until it is as busy as `BUSY` on average."""
        at = 0
        while at < GPUS and draw.random() < BUSY:
            size = min(draw.choice((1, 1, 2, 4, 8)), GPUS - at)
            job_id = f"run-{number:04d}-{at}"
            self.apply(enqueued(job_id, 1, size))
            allocation = Allocation(
                rank=0,
                node_id=f"n{number:04d}",
                gpus=tuple(range(at, at + size)),
                cpus=size,
                mem_gib=size,
            )
            self.apply(
                JobPlaced(
                    job_id=job_id,
                    tenant="t",
                    attempt=1,
                    allocations=(allocation,),
                    waited_ms=0,
                    policy="bench",
                )
            )
            at += size

    def submit(self, job_id: str, draw: random.Random) -> None:
        sizes = tuple(GPU_SHARES)
        gpus = draw.choices(sizes, weights=[GPU_SHARES[size] for size in sizes])[0]
        shape = make_gang(gpus)
        self.apply(enqueued(job_id, shape.workers, shape.gpus_per_worker))


def enqueued(job_id: str, workers: int, gpus: float) -> JobEnqueued:
    shape = Gang(workers=workers, gpus_per_worker=gpus)
    spec = JobSpec(name="job", gang=shape)
    return JobEnqueued(job_id=job_id, tenant="t", submitted_at=AT, spec=spec)
