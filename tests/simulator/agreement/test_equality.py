"""Both engines start and end every job at the same ms, on random workloads full of gangs."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pytest

from services.placement.core.pool import overdue
from shared.contracts.pools import NEVER_S, EasyRuntime, QueueMode
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
SHORT_HOLD_S = 4.0
REFRESH_S = 5.0
"""Period after which the live decider ranks an unchanged queue again."""
LEARNED, MODEL = "learned", "berth-preempt"
BAND = json.loads((FOLDER / f"{MODEL}.json").read_bytes()).get("band", 0.0)


@dataclass(frozen=True)
class Progress:
    """Settings of the pool under the names of both engines, and what the jobs are like."""

    settings: dict[str, Any] = field(default_factory=dict)
    checkpoint_cost_s: float = 0.0
    checkpoint_spread: float = 0.0
    restart_growth: float = 0.0
    fixed_share: float = 0.0


RESIDENCY = Progress({"preemption_protection": "residency"})
FLOOR = {"tenant_floor": 0.4}
NO_FLOOR = Progress(RESIDENCY.settings | {"tenant_floor": 0.0})

GUARD = {"guard_predictions": True}
"""An event without the setting has that of earlier releases."""
UNGUARDED = Progress(RESIDENCY.settings | {"guard_predictions": False})

EASY_RUNTIMES: tuple[EasyRuntime, ...] = ("user", "history")
PLAIN = ("fcfs", "smallest_first", "sjf", "saf", "f1", "wfp3", "unicep", "multifactor")


def also(*names: str) -> list[Any]:
    """Return the policies or rules that `make test-parts` alone compares."""
    return [pytest.param(name, marks=pytest.mark.parts) for name in names]


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


def with_failures(jobs: list[WorkloadJob], seed: int) -> list[WorkloadJob]:
    """The same jobs, of which a third fail, half of those at once."""
    draws = random.Random(seed)
    return [
        replace(
            job, succeeded=draws.random() > 0.35, duration_s=draws.choice((job.duration_s, 5.0))
        )
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
    progress: Progress | None,
    easy: EasyRuntime,
) -> tuple[Ints, Ints, int]:
    learned = policy == LEARNED
    pool = simulated_pool(
        base_policy="fcfs" if learned else policy,
        learned=MODEL if learned else None,
        queue_mode=mode,
        runtime=runtime,
        easy_runtime=easy,
        min_residency_s=RESIDENCY_S,
        preempt_margin=margin,
        preemption="ranked" if ranked else "class",
        large_gang_share=large,
        defragment_after_s=NEVER_S if after_s is None else after_s,
        **(GUARD | FLOOR | (progress or RESIDENCY).settings),
    )
    done = simulate(
        Scenario(
            jobs=jobs,
            nodes=equal_nodes(NODES, pool=POOL),
            pool=pool,
            window_s=window_of(jobs),
            restart_s=RESTART_S,
            checkpoint_s=CHECKPOINT_S,
            checkpoint_cost_s=progress.checkpoint_cost_s if progress else 0.0,
            checkpoint_spread=progress.checkpoint_spread if progress else 0.0,
            restart_growth=progress.restart_growth if progress else 0.0,
            fixed_share=progress.fixed_share if progress else 0.0,
            walltime="oracle" if easy == "user" else "none",
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
    progress: Progress | None,
    easy: EasyRuntime,
) -> tuple[Ints, Ints, int]:
    work = build_work(columns_from(jobs))
    rules = kernel.Rules(
        policy=policy,
        queue_mode=mode,
        runtime=runtime,
        easy_runtime=easy,
        preemption=ranked,
        min_residency_s=RESIDENCY_S,
        restart_s=RESTART_S,
        checkpoint_s=CHECKPOINT_S,
        refresh_s=REFRESH_S,
        large_gang_share=large,
        preempt_margin=margin,
        defragment_after_s=after_s,
        checkpoint_cost_s=progress.checkpoint_cost_s if progress else 0.0,
        checkpoint_spread=progress.checkpoint_spread if progress else 0.0,
        restart_growth=progress.restart_growth if progress else 0.0,
        fixed_share=progress.fixed_share if progress else 0.0,
        **(FLOOR | (progress or RESIDENCY).settings),
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
    progress: Progress | None = None,
    easy: EasyRuntime = "user",
) -> int:
    """The number of jobs that were stopped on the way."""
    live = faithful(jobs, policy, mode, runtime, ranked, margin, large, after_s, progress, easy)
    kern = compiled(jobs, policy, mode, runtime, ranked, margin, large, after_s, progress, easy)
    assert live[0].tolist() == kern[0].tolist()
    assert live[1].tolist() == kern[1].tolist()
    assert live[2] == kern[2]
    return live[2]


def stops_of(jobs: list[WorkloadJob], policy: str, mode: QueueMode) -> int:
    """Jobs that the compiled engine stops with preemption by rank, which agrees below."""
    return compiled(jobs, policy, mode, "oracle", True, 0.0, 1.0, None, None, "user")[2]


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", PLAIN)
def test_orders_without_preemption_agree_in_every_mode(policy: str, mode: QueueMode) -> None:
    assert_same(workload(seed=PLAIN.index(policy)), policy, mode)


@pytest.mark.parametrize("policy", ["saf", "qssf", "gittins"])
def test_run_times_of_history_agree(policy: str) -> None:
    assert_same(workload(seed=11, tenants=3), policy, "skip", "history")


@pytest.mark.parametrize("policy", ["fcfs", "saf", "wfp3", "gittins"])
def test_backfilling_by_predicted_run_times_agrees(policy: str) -> None:
    """Predictions differ from the true run times so much that jobs start at other times."""
    runtime: Runtime = "history" if policy in ("saf", "gittins") else "oracle"
    jobs = slowed(workload(seed=26, tenants=3), 10)
    assert_same(jobs, policy, "easy", runtime, easy="history")
    known, predicted = (
        compiled(jobs, policy, "easy", runtime, False, 0.0, 1.0, None, NO_FLOOR, easy)[0].tolist()
        for easy in EASY_RUNTIMES
    )
    assert known != predicted


def test_backfilling_by_predicted_run_times_agrees_with_preemption() -> None:
    stops = [
        assert_same(workload(s, tenants=3), "srsf", "easy", ranked=True, easy="history")
        for s in range(3)
    ]
    assert sum(stops) > 0


@pytest.mark.parametrize("policy", ["fcfs", "srsf", *also("saf")])
@pytest.mark.parametrize("ranked", [False, True])
def test_predictions_that_are_guarded_agree(policy: str, ranked: bool) -> None:
    """A third of the jobs fail, many of them at once; the guard changes when jobs start."""

    def starts(jobs: list[WorkloadJob], rules: Progress) -> list[int]:
        ran = compiled(jobs, policy, "easy", "history", ranked, 0.0, 1.0, None, rules, "history")
        return list(map(int, ran[0]))

    many = [with_failures(slowed(workload(s, tenants=2), 10), s) for s in range(8)]
    jobs = next(jobs for jobs in many if starts(jobs, RESIDENCY) != starts(jobs, UNGUARDED))
    for rules in (RESIDENCY, UNGUARDED):
        assert_same(jobs, policy, "easy", "history", ranked, progress=rules, easy="history")


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["gittins", *also("fcfs", "wfp3", "srsf")])
@pytest.mark.parametrize("ranked", [False, True])
def test_reservations_after_a_long_wait_agree(policy: str, mode: QueueMode, ranked: bool) -> None:
    changed = 0
    for seed, after_s in enumerate((0.0, 30.0, 60.0)):
        jobs = workload(seed, tenants=2)
        starts = []
        for wait_s, guarded in ((after_s, True), (after_s, False), (None, True)):
            own = {"reserve_after_s": wait_s, "guard_predictions": guarded, "tenant_floor": 0.2}
            rules = Progress(RESIDENCY.settings | own)
            if wait_s is not None:
                assert_same(
                    jobs, policy, mode, ranked=ranked, after_s=20.0, progress=rules, easy="history"
                )
            ran = compiled(jobs, policy, mode, "oracle", ranked, 0.0, 1.0, 20.0, rules, "history")
            starts.append(ran[0].tolist())
        changed += starts[0] != starts[2]
    assert changed > 0 or (policy, mode) == ("fcfs", "strict")


@pytest.mark.parametrize("mode", ["skip", "easy"])
@pytest.mark.parametrize("ranked", [False, True])
def test_reservations_that_lapse_agree(
    mode: QueueMode, ranked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With reservations of some seconds, which changes when jobs start, not of a day or more."""
    changed = 0
    for seed, after_s in enumerate((0.0, 2.0, 10.0, 5.0)):
        jobs, starts = workload(seed, tenants=2), []
        for hold_s in (SHORT_HOLD_S, 86_400.0):
            monkeypatch.setattr(overdue, "LEAST_HOLD_S", hold_s)
            rules = Progress(RESIDENCY.settings | {"reserve_after_s": after_s})
            if hold_s == SHORT_HOLD_S:
                assert_same(jobs, "fcfs", mode, ranked=ranked, progress=rules, easy="history")
            ran = compiled(jobs, "fcfs", mode, "oracle", ranked, 0.0, 1.0, None, rules, "history")
            starts.append(ran[0].tolist())
        changed += starts[0] != starts[1]
    assert changed > 0


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["srsf", "las", *also("srtf")])
def test_preemption_by_rank_agrees(policy: str, mode: QueueMode) -> None:
    stops = [assert_same(workload(seed), policy, mode, ranked=True) for seed in range(3)]
    assert sum(stops) > 0 or policy == "las"


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_gangs_that_rank_spares_agree(mode: QueueMode) -> None:
    spared = [assert_same(workload(s), "srsf", mode, ranked=True, large=0.25) for s in range(3)]
    stopped = [stops_of(workload(s), "srsf", mode) for s in range(3)]
    assert sum(spared) > 0
    assert spared != stopped or mode != "skip"


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["fcfs", *also("srsf")])
def test_jobs_that_move_for_larger_ones_agree(policy: str, mode: QueueMode) -> None:
    moved = [assert_same(workload(s), policy, mode, ranked=True, after_s=20.0) for s in range(4)]
    stay = [stops_of(workload(s), policy, mode) for s in range(4)]
    assert sum(moved) > 0
    assert moved != stay or (policy, mode) == ("srsf", "easy")


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["gittins", LEARNED])
def test_preemption_by_rank_of_history_agrees(policy: str, mode: QueueMode) -> None:
    """Over some hours, so that the network's context is computed again."""
    seed = 2 if mode == "skip" else 1
    jobs = slowed(workload(seed, tenants=3), 10)
    assert assert_same(jobs, policy, mode, "history", ranked=True, margin=0.1 * seed, after_s=200.0)


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
def test_the_learned_order_without_preemption_agrees(mode: QueueMode) -> None:
    assert_same(slowed(workload(5, tenants=3), 10), LEARNED, mode, "history")


def progress_of(**settings: Any) -> Progress:
    """Rules of a size with these short jobs: about every rule protects some job in each run."""
    plain = {
        "preemption_protection": "progress",
        "checkpoint_window_s": 3.0,
        "start_protection_s": 4.0,
        "cheap_restarts": 1,
        "loss_share": 0.03,
        "loss_window_s": 600.0,
        "preempt_price": 1.0,
    }
    own = {
        name: settings.pop(name)
        for name in ("checkpoint_cost_s", "checkpoint_spread", "restart_growth", "fixed_share")
        if name in settings
    }
    return Progress(plain | settings, **own)


PROGRESS = {
    "all rules": progress_of(),
    "no budget": progress_of(loss_share=1.0),
    "no price": progress_of(preempt_price=0.0),
    "no window": progress_of(checkpoint_window_s=NEVER_S, loss_share=1.0),
    "a small budget": progress_of(loss_share=0.01, loss_window_s=100.0),
    "stops write checkpoints": progress_of(checkpoint_cost_s=2.0),
    "some jobs are fixed": progress_of(fixed_share=0.3),
    "each its own costs": progress_of(checkpoint_spread=1.0, restart_growth=0.5),
    "each its own, written at the stop": progress_of(checkpoint_cost_s=2.0, checkpoint_spread=1.0),
}


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("rules", ["all rules", *also(*[*PROGRESS][1:])])
@pytest.mark.parametrize("policy", ["gittins", LEARNED, *also("srsf")])
def test_preemption_that_makes_progress_agrees(policy: str, rules: str, mode: QueueMode) -> None:
    runtime: Runtime = "oracle" if policy == "srsf" else "history"
    stops = 0
    for seed in (1, 2):
        factor = 1 if policy == "srsf" else 4
        stops += assert_same(
            slowed(workload(seed, tenants=3), factor),
            policy,
            mode,
            runtime,
            ranked=True,
            margin=0.1,
            large=0.5,
            after_s=30.0,
            progress=PROGRESS[rules],
        )
    assert stops > 0


@pytest.mark.parametrize("mode", ["strict", "skip", "easy"])
@pytest.mark.parametrize("policy", ["gittins", *also("srsf")])
@pytest.mark.parametrize("ranked", [False, True])
def test_jobs_that_tenants_are_entitled_to_agree(
    policy: str, mode: QueueMode, ranked: bool
) -> None:
    """With a part of the pool that decides which jobs start, not only without one."""
    runtime: Runtime = "oracle" if policy == "srsf" else "history"
    jobs = slowed(workload(4, tenants=4), 4)
    starts = []
    for floor in (0.0, 0.5, 1.0):
        rules = progress_of(tenant_floor=floor)
        if floor:
            assert_same(jobs, policy, mode, runtime, ranked=ranked, margin=0.2, progress=rules)
        ran = compiled(jobs, policy, mode, runtime, ranked, 0.2, 1.0, None, rules, "user")
        starts.append(ran[0].tolist())
    assert starts[0] != starts[2] or not ranked
