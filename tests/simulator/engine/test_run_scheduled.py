"""A simulation whose pool has a scheduler, which decides at the same instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar

import pytest

from services.placement.core.scheduled import request
from shared.ledger.partition import TP
from shared.schedulers.hooks import Allotments, Decides, Hooks, Memory, Placements, admit
from shared.schedulers.placing import take
from shared.schedulers.view import ClusterView
from simulator.engine.failures import NodeFailure
from simulator.engine.lane import LANE
from simulator.engine.options import SimulationOptions, build_scenario
from simulator.engine.publishing import publish, verify_ledgers
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.metrics.measures import measure
from simulator.workload.rows import WorkloadJob
from simulator.workload.source import SYNTHETIC, load

JOBS = 60


def played(scheduler: str | None) -> Simulation:
    scenario, _ = build_scenario(load(SYNTHETIC, JOBS, seed=3).jobs, SimulationOptions(load=2.0))
    pool = scenario.pool.model_copy(update={"scheduler": scheduler, "scheduler_round_s": 600.0})
    return simulate(replace(scenario, pool=pool))


def test_a_scheduler_decides_in_a_simulation_the_same_each_time() -> None:
    own, again, ranked = played("tiresias"), played("tiresias"), played(None)
    assert (own.start_ms == again.start_ms).all() and (own.end_ms == again.end_ms).all()
    assert ((own.end_ms > 0) == (ranked.end_ms > 0)).all(), "those that fit end"
    assert (own.start_ms != ranked.start_ms).any(), "or the scheduler would have decided nothing"


@pytest.mark.parametrize("scheduler", ["a_srpt", "dally", "tiresias_las"])
def test_every_job_ends_under_a_scheduler_that_chooses_nodes(scheduler: str) -> None:
    own, ranked = played(scheduler), played(None)
    assert ((own.end_ms > 0) == (ranked.end_ms > 0)).all(), "those that fit end"
    assert (own.start_ms != ranked.start_ms).any(), "or the scheduler would have decided nothing"


class Restless(Hooks):
    """Gives the jobs of a round GPUs on nodes by chance, those that run too."""

    name: ClassVar[str] = "restless"
    source: ClassVar[str] = "a test"
    decides: ClassVar[tuple[Decides, ...]] = ("order", "nodes")

    def allot(self, view: ClusterView, ranked: Sequence[str], memory: Memory) -> Allotments:
        return admit(view, ranked, {})

    def place(self, view: ClusterView, allotments: Allotments, memory: Memory) -> Placements:
        chance = Random(view.round_number)
        free = {node.node_id: node.gpus for node in view.nodes}
        placements: Placements = {}
        for job_id, own in allotments.items():
            nodes = [name for name, gpus in free.items() if gpus >= own.gpus]
            if nodes:
                placements[job_id] = ((chance.choice(nodes), own.gpus),)
                take(free, placements[job_id])
        return placements


async def test_every_rule_of_verify_holds_while_a_scheduler_moves_jobs_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs change places each round, while nodes fail under them and return."""
    monkeypatch.setattr(request, "scheduler_of", lambda name: Restless())
    jobs = [
        WorkloadJob(f"k{n:03d}", "t", "u", "job", 20.0 * n, 900.0, 1, 1.0 + n % 3, None, 1, 1, None)
        for n in range(40)
    ]
    scenario = Scenario(
        jobs=jobs,
        nodes=equal_nodes(3, pool=POOL),
        pool=simulated_pool(scheduler="restless", scheduler_round_s=120.0, min_residency_s=0.0),
        window_s=window_of(jobs, 1.0),
        walltime="oracle",
        checkpoint_s=30.0,
        restart_s=5.0,
        failures=(NodeFailure("n1", 400.0, 900.0), NodeFailure("n0", 1500.0, 1510.0)),
    )
    done = simulate(scenario, ledgers=True)
    assert done.broker is not None
    publish(done.broker)
    report = await verify_ledgers(done.broker)
    assert report.violations == []
    assert measure(done.outcome).all.unfinished == 0
    written = b"".join(entry.value or b"" for entry in done.broker.entries(TP("placement", LANE)))
    assert written.count(b"job.migrated.v1") > 10
    assert written.count(b"job.preempted.v1") > 10
