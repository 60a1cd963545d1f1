"""The faithful engine against answers known by hand and by an independent recursion."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simulator.engine.failures import NodeFailure
from simulator.engine.publishing import publish, verify_ledgers
from simulator.engine.recording import dump, restore_broker
from simulator.engine.run import Simulation, simulate
from simulator.engine.scenario import FIRST_MS, POOL, NodeCordon, Scenario, simulated_pool, spec_of
from simulator.engine.sizing import equal_nodes, window_of
from simulator.metrics.measures import measure
from simulator.workload.rows import WorkloadJob

Row = tuple[float, float, int, float]
"""submit s, run s, workers, GPUs per worker"""


def jobs_of(rows: list[Row]) -> list[WorkloadJob]:
    return [
        WorkloadJob(f"k{n:03d}", "t", "u", "job", at, run, workers, gpus, None, 1, 1, None)
        for n, (at, run, workers, gpus) in enumerate(rows)
    ]


def played(rows: list[Row], nodes: int = 1, ledgers: bool = False, **options: object) -> Simulation:
    jobs = jobs_of(rows)
    own = {
        name: options.pop(name)
        for name in ("failures", "checkpoint_s", "restart_s")
        if name in options
    }
    return simulate(
        Scenario(
            jobs=jobs,
            nodes=equal_nodes(nodes, pool=POOL),
            pool=simulated_pool(**options),  # type: ignore[arg-type]
            window_s=window_of(jobs, 1.0),
            walltime="oracle",
            **own,  # type: ignore[arg-type]
        ),
        ledgers=ledgers,
    )


def starts_s(done: Simulation) -> list[float]:
    """First starts, to the second: a round comes 1 ms after what it decides on."""
    return [(at - FIRST_MS) // 1000 if at >= 0 else -1 for at in done.start_ms.tolist()]


HEADED = [(0.0, 100.0, 1, 4.0), (1.0, 50.0, 1, 8.0), (2.0, 40.0, 1, 4.0), (3.0, 200.0, 1, 4.0)]
"""8 GPUs: a half job runs, a whole one waits, then a short and a long half job come."""


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("strict", [0, 100, 150, 150]), ("skip", [0, 242, 2, 42]), ("easy", [0, 100, 2, 150])],
)
def test_a_small_trace_by_hand_in_each_mode(mode: str, expected: list[float]) -> None:
    """Skipping lets both past the head; EASY only the one that is over when the head can start."""
    assert starts_s(played(HEADED, queue_mode=mode)) == expected


def test_a_job_that_never_fits_is_a_failure_and_delays_no_other() -> None:
    done = played([(0.0, 10.0, 1, 8.0), (1.0, 10.0, 2, 8.0), (2.0, 10.0, 1, 8.0)])
    measures = measure(done.outcome)
    assert done.rejected == {"infeasible": 1}
    assert (measures.all.jobs, measures.all.never_fit, measures.all.unfinished) == (3, 1, 0)
    assert starts_s(done) == [0, -1, 10]


def test_a_stopped_job_keeps_its_checkpoint_and_pays_its_restart() -> None:
    """100 s of work, stopped at 30 s: 20 s are kept, 10 lost; 80 left and 5 for the restart."""
    done = played(
        [(0.0, 100.0, 1, 8.0), (25.0, 10.0, 1, 8.0)],
        base_policy="srtf",
        runtime="oracle",
        preemption="ranked",
        min_residency_s=30.0,
        checkpoint_s=20.0,
        restart_s=5.0,
    )
    assert starts_s(done) == [0, 30]
    assert done.outcome.end_s.tolist() == pytest.approx([40 + 80 + 5, 40], abs=0.02)
    assert done.outcome.lost_s.tolist() == pytest.approx([15, 0], abs=0.02)
    assert done.outcome.queued_s.tolist() == pytest.approx([10, 5], abs=0.02)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_gpu_jobs_follow_the_recursion_of_a_queue_with_many_servers(seed: int) -> None:
    """G/G/c, first come first served: each takes the server that is free first."""
    chance, at, rows = random.Random(seed), 0, []
    for _ in range(60):
        at += chance.randrange(0, 4000)
        rows.append((at / 1000, chance.randrange(1000, 60_000) / 1000, 1, 1.0))
    done = played(rows, nodes=1)
    free, expected = [0] * 8, []
    for submit_s, run_s, _, _ in rows:
        start = max(round(submit_s * 1000), heapq.heappop(free)) + 1
        heapq.heappush(free, start + round(run_s * 1000))
        expected.append(start)
    begin = round(rows[0][0] * 1000)
    assert (done.start_ms - FIRST_MS + begin).tolist() == expected


def test_gpu_seconds_are_conserved() -> None:
    """The pool held as much as its jobs; without losses it is their work."""
    done = played(HEADED)
    work = sum(run * workers * gpus for _, run, workers, gpus in HEADED)
    held = float((done.outcome.held_s * done.outcome.gpus).sum())
    assert held == pytest.approx(work, rel=1e-6)
    whole = simulate(done.scenario)
    assert whole.outcome.busy_gpu_s <= held
    assert measure(done.outcome).lost_share == 0.0


DAY = [(float(n % 7 * 40), 60.0 + 37 * (n % 5), 1 + n % 3, float(1 << n % 4)) for n in range(24)]
DAY.sort()
FALLS = (NodeFailure("n1", 50.0, 400.0), NodeFailure("n0", 300.0, 310.0))
RANKED: dict[str, Any] = {
    "base_policy": "srsf",
    "runtime": "oracle",
    "preemption": "ranked",
    "min_residency_s": 20.0,
    "checkpoint_s": 30.0,
    "restart_s": 5.0,
    "failures": FALLS,
}


async def test_every_rule_of_verify_holds_over_preemptions_and_node_failures(tmp_path) -> None:  # type: ignore[no-untyped-def]
    done = played(DAY, nodes=3, ledgers=True, **RANKED)
    assert done.broker is not None
    assert publish(done.broker) > 100
    report = await verify_ledgers(done.broker)
    assert report.violations == []
    assert report.counts["commands"] == len(DAY)
    assert measure(done.outcome).preemptions > 2
    assert measure(done.outcome).all.unfinished == 0
    dump(done.broker, tmp_path)
    again = await verify_ledgers(restore_broker(tmp_path))
    assert again.violations == []
    assert again.counts == report.counts


def test_the_same_scenario_gives_the_same_ledgers_and_keeping_them_changes_nothing() -> None:
    one, other = (played(DAY, nodes=3, ledgers=True, **RANKED) for _ in range(2))
    silent = played(DAY, nodes=3, **RANKED)
    assert one.broker is not None and other.broker is not None
    for tp, entries in one.broker._partitions.items():
        assert [e.value for e in entries] == [e.value for e in other.broker.entries(tp)]
    assert one.start_ms.tolist() == silent.start_ms.tolist()
    assert np.array_equal(one.outcome.end_s, silent.outcome.end_s)


def test_a_job_runs_as_fast_as_the_gpus_that_it_got() -> None:
    """Best fit takes the first of two empty nodes; a gang over both waits for its slower half."""
    jobs = jobs_of([(0.0, 100.0, 1, 8.0), (1.0, 100.0, 1, 8.0), (300.0, 100.0, 2, 8.0)])
    nodes = equal_nodes(2, pool=POOL, gpu_type="old")
    nodes["n0"] = replace(nodes["n0"], gpu_type="new")
    done = simulate(
        Scenario(
            jobs=jobs,
            nodes=nodes,
            pool=simulated_pool(),
            window_s=window_of(jobs, 1.0),
            gpu_speeds={"new": 4.0, "old": 0.5},
        )
    )
    assert ((done.end_ms - done.start_ms) / 1000).tolist() == [25.0, 200.0, 200.0]


def test_with_the_solver_a_job_is_on_its_type_and_a_gang_in_its_rack() -> None:
    """Best fit takes the first nodes by name: a slow one, and those of two racks."""
    jobs = jobs_of([(0.0, 100.0, 1, 8.0), (500.0, 100.0, 2, 8.0)])
    nodes = equal_nodes(4, pool=POOL, gpu_type="old", racks=4)
    nodes["n2"] = replace(nodes["n2"], gpu_type="new", rack="r9")
    nodes["n3"] = replace(nodes["n3"], gpu_type="new", rack="r9")
    declared = {"gpu_speeds": {"new": 4.0}, "spread_speeds": {"rack": 0.5, "spine": 0.25}}

    def ran_s(solver: str) -> list[float]:
        plain = Scenario(
            jobs=jobs,
            nodes=nodes,
            pool=simulated_pool(solver=solver),
            window_s=window_of(jobs, 1.0),
        )
        specs = [spec_of(plain, index).model_copy(update=declared) for index in range(len(jobs))]
        done = simulate(replace(plain, specs=specs))
        return list(((done.end_ms - done.start_ms) / 1000).tolist())

    assert ran_s("greedy") == [100.0, 400.0]
    assert ran_s("cpsat") == [25.0, 50.0]


def test_a_failed_node_takes_no_job_until_it_is_repaired() -> None:
    """It is known to be lost after a minute, and is back after an hour, or never."""
    rows: list[Row] = [(0.0, 10.0, 1, 8.0), (200.0, 10.0, 1, 8.0), (5000.0, 10.0, 1, 8.0)]
    repaired = played(rows, failures=[NodeFailure("n0", 100.0, 3600.0)])
    assert starts_s(repaired) == [0, 3600, 5000]
    gone = played(rows, failures=[NodeFailure("n0", 100.0, math.inf)])
    assert starts_s(gone) == [0, -1, -1]


def test_a_cordoned_node_takes_no_job_until_it_is_opened() -> None:
    jobs = jobs_of([(0.0, 10.0, 1, 8.0), (200.0, 10.0, 1, 8.0)])
    cordons = [NodeCordon(100.0, "n0", "cordoned"), NodeCordon(900.0, "n0", "open")]
    done = simulate(
        Scenario(
            jobs=jobs,
            nodes=equal_nodes(1, pool=POOL),
            pool=simulated_pool(),
            window_s=window_of(jobs, 1.0),
            cordons=cordons,
        )
    )
    assert starts_s(done) == [0, 900]
