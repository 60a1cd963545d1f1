"""Both engines start and end every job at the same ms, on random workloads full of gangs."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pytest

from shared.contracts.access import NEVER_S, QueueMode
from simulator.engine.models import FOLDER
from simulator.engine.run import simulate
from simulator.engine.scenario import FIRST_MS, POOL, Scenario, simulated_pool
from simulator.engine.sizing import equal_nodes, window_of
from simulator.kernel import run as kernel
from simulator.kernel.network import theta_of
from simulator.kernel.work import build_work
from simulator.metrics.outcome import Ints
from simulator.workload.jobs import columns_from
from simulator.workload.rows import WorkloadJob

Runtime: TypeAlias = Literal["oracle", "history"]

pytestmark = pytest.mark.slow

NODES = 4
SHAPES = ((1, 1), (1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (2, 4), (3, 2), (NODES, 8), (5, 1))
JOBS = 30
RESIDENCY_S, RESTART_S, CHECKPOINT_S = 20.0, 5.0, 10.0
REFRESH_S = 5.0
"""Period after which the live decider ranks an unchanged queue again."""
LEARNED, MODEL = "learned", "berth-preempt"
BAND = json.loads((FOLDER / f"{MODEL}.json").read_bytes()).get("band", 0.0)

PLAIN = ("fcfs", "smallest_first", "sjf", "saf", "f1", "wfp3", "unicep", "multifactor")


def workload(seed: int, tenants: int = 1) -> list[WorkloadJob]:
    """Bursts of jobs whose run times differ by orders of magnitude; more than the pool can do."""
    draws, at = random.Random(seed), 0.0
    jobs = []
    for number in range(JOBS):
        at += round(draws.expovariate(1 / 6), 3) if draws.random() < 0.8 else 0.0
        workers, gpus = draws.choice(SHAPES)
        run_s = min(max(round(draws.lognormvariate(3.0, 1.2), 3), 0.05), 300.0)
        jobs.append(
            WorkloadJob(
                f"k{number:03d}",
                f"t{draws.randrange(tenants)}",
                f"u{draws.randrange(3)}",
                f"n{draws.randrange(4)}",
                round(at, 3),
                run_s,
                workers,
                float(gpus),
                None,
                1,
                1,
                None,
            )
        )
    return jobs


def slowed(jobs: list[WorkloadJob], factor: int) -> list[WorkloadJob]:
    """The same jobs, all times so many times as long."""
    return [
        replace(job, submit_s=job.submit_s * factor, duration_s=job.duration_s * factor)
        for job in jobs
    ]


def faithful(
    jobs: list[WorkloadJob],
    policy: str,
    mode: QueueMode,
    runtime: Runtime,
    ranked: bool,
    margin: float,
    large: float,
    after_s: float | None,
) -> tuple[Ints, Ints, int]:
    learned = policy == LEARNED
    pool = simulated_pool(
        base_policy="fcfs" if learned else policy,
        learned=MODEL if learned else None,
        queue_mode=mode,
        runtime=runtime,
        min_residency_s=RESIDENCY_S,
        preempt_margin=margin,
        preemption="ranked" if ranked else "class",
        large_gang_share=large,
        defragment_after_s=NEVER_S if after_s is None else after_s,
    )
    done = simulate(
        Scenario(
            jobs=jobs,
            nodes=equal_nodes(NODES, pool=POOL),
            pool=pool,
            window_s=window_of(jobs),
            restart_s=RESTART_S,
            checkpoint_s=CHECKPOINT_S,
            walltime="oracle",
        )
    )
    stops = int((done.outcome.starts - 1).clip(0).sum())
    return done.start_ms - FIRST_MS, done.end_ms - FIRST_MS, stops


def compiled(
    jobs: list[WorkloadJob],
    policy: str,
    mode: QueueMode,
    runtime: Runtime,
    ranked: bool,
    margin: float,
    large: float,
    after_s: float | None,
) -> tuple[Ints, Ints, int]:
    work = build_work(columns_from(jobs))
    rules = kernel.Rules(
        policy=policy,
        queue_mode=mode,
        runtime=runtime,
        preemption=ranked,
        min_residency_s=RESIDENCY_S,
        restart_s=RESTART_S,
        checkpoint_s=CHECKPOINT_S,
        refresh_s=REFRESH_S,
        large_gang_share=large,
        preempt_margin=margin,
        defragment_after_s=after_s,
        theta=theta_of((FOLDER / f"{MODEL}.onnx").read_bytes()),
        band=BAND,
    )
    ran = kernel.simulate(work, np.full(NODES, 8, np.int64), rules)
    begin = work.submit_ms[0]
    start, end = (
        np.rint(seconds * 1000).astype(np.int64) - begin
        for seconds in (ran.outcome.start_s, ran.outcome.end_s)
    )
    return start, end, ran.preemptions


def assert_same(
    jobs: list[WorkloadJob],
    policy: str,
    mode: QueueMode,
    runtime: Runtime = "oracle",
    ranked: bool = False,
    margin: float = 0.0,
    large: float = 1.0,
    after_s: float | None = None,
) -> int:
    """How many jobs were stopped on the way."""
    live = faithful(jobs, policy, mode, runtime, ranked, margin, large, after_s)
    kern = compiled(jobs, policy, mode, runtime, ranked, margin, large, after_s)
    assert live[0].tolist() == kern[0].tolist()
    assert live[1].tolist() == kern[1].tolist()
    assert live[2] == kern[2]
    return live[2]


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", PLAIN)
def test_orders_without_preemption_agree_in_every_mode(policy: str, mode: QueueMode) -> None:
    assert_same(workload(seed=PLAIN.index(policy)), policy, mode)


@pytest.mark.parametrize("policy", ["saf", "qssf", "gittins"])
def test_run_times_of_history_agree(policy: str) -> None:
    assert_same(workload(seed=11, tenants=3), policy, "skip", "history")


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["srsf", "srtf", "las"])
def test_preemption_by_rank_agrees(policy: str, mode: QueueMode) -> None:
    stops = [assert_same(workload(seed), policy, mode, ranked=True) for seed in range(3)]
    assert sum(stops) > 0 or policy == "las"


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_gangs_that_rank_spares_agree(mode: QueueMode) -> None:
    spared = [assert_same(workload(s), "srsf", mode, ranked=True, large=0.25) for s in range(3)]
    stopped = [assert_same(workload(s), "srsf", mode, ranked=True) for s in range(3)]
    assert sum(spared) > 0
    assert spared != stopped or mode != "skip"


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["fcfs", "srsf"])
def test_jobs_that_move_for_larger_ones_agree(policy: str, mode: QueueMode) -> None:
    moved = [assert_same(workload(s), policy, mode, ranked=True, after_s=20.0) for s in range(4)]
    stay = [assert_same(workload(s), policy, mode, ranked=True) for s in range(4)]
    assert sum(moved) > 0
    assert moved != stay or (policy, mode) == ("srsf", "easy")


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["gittins", LEARNED])
def test_preemption_by_rank_of_history_agrees(policy: str, mode: QueueMode) -> None:
    """Over some hours, so that the network's context is computed again."""
    stops = 0
    for seed in (1, 2):
        jobs = slowed(workload(seed, tenants=3), 10)
        stops += assert_same(
            jobs, policy, mode, "history", ranked=True, margin=0.1 * seed, after_s=200.0
        )
    assert stops > 0


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_the_learned_order_without_preemption_agrees(mode: QueueMode) -> None:
    assert_same(slowed(workload(5, tenants=3), 10), LEARNED, mode, "history")
