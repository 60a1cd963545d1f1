"""The compiled kernel against the code of the live services."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numba import njit

from services.placement.core.pool.board import Board
from services.placement.core.pool.node import Node
from services.placement.core.pool.trial import Trial
from services.placement.core.round import fit
from services.priority.core.history import distributions as history
from services.priority.core.learned.features import compute_features
from services.priority.core.policies import keys
from shared.contracts.gang_needs import GPU, NodeKind, Shape
from simulator.engine.models import FOLDER
from simulator.kernel import board, forecast, learned, ranking, state
from simulator.kernel.codes import INPUTS, PER_HIDDEN
from simulator.kernel.initial import initial_state
from simulator.kernel.job_costs import job_costs
from simulator.kernel.network import theta_of
from simulator.kernel.run import POLICIES, Rules, pack_rules
from simulator.kernel.work import build_work
from simulator.workload.jobs import columns_from
from tests.services.priority.core.queues import view_of
from tests.simulator.kernel.workloads import mixed

pytestmark = pytest.mark.slow

MODEL = FOLDER / "berth-preempt.onnx"


@njit
def placed_by(free: Any, levels: Any, workers: int, gpus: int, placed: Any) -> int:
    if not board.has_room(levels, workers, gpus):
        return 0
    return board.place(free, levels, workers, gpus, placed)


@pytest.mark.parametrize("seed", range(4))
def test_a_gang_takes_the_nodes_that_the_live_best_fit_takes(seed: int) -> None:
    random = Random(seed)
    sizes = np.array([random.choice([4, 8, 8]) for _ in range(12)], np.int64)
    nodes = Board()
    for at, gpus in enumerate(sizes.tolist()):
        kind = NodeKind("H100", gpus, 1000, 1000, ())
        shares = [GPU] * gpus
        node = Node(f"n{at:02d}", "i", "virtual", kind, {}, shares, gpus, 1000, 1000)
        nodes.nodes[node.node_id] = node
        nodes.index(node)
    free, levels = sizes.copy(), np.bincount(sizes)
    placed = state.table(state.AllocationRow, len(sizes))
    fitted = 0
    for _ in range(40):
        workers, gpus = random.choice([(1, 1), (1, 2), (2, 2), (3, 3), (1, 8), (2, 4), (5, 1)])
        slots = fit.place(Trial(nodes), Shape(gpus, GPU, 0, 0, (), (), workers, workers), ())
        count = placed_by(free, levels, workers, gpus, placed)
        nodes_taken = [(f"n{placed.node[k]:02d}", int(placed.gpus[k])) for k in range(count)]
        taken: dict[str, int] = {}
        for slot in slots:
            taken[slot.node_id] = taken.get(slot.node_id, 0) + len(slot.gpus)
        assert nodes_taken == list(taken.items())
        fitted += count > 0
        assert levels.tolist() == np.bincount(free, minlength=len(levels)).tolist()
    assert 0 < fitted < 40


@njit
def waiting_keys(sim: Any, now: int, values: Any) -> None:
    for j in range(len(sim.jobs)):
        values[j] = ranking.key_of(sim, j, now, 0.0, False)


def test_keys_are_those_of_the_live_policies() -> None:
    work = build_work(columns_from(mixed(40, 6)))
    now = int(work.submit_ms[-1]) + 5000
    first = int(work.submit_ms[0])
    for policy in (
        "fcfs",
        "smallest_first",
        "sjf",
        "saf",
        "f1",
        "wfp3",
        "unicep",
        "multifactor",
        "las",
        "srtf",
        "srsf",
    ):
        own = Rules(policy, runtime="oracle")
        sim = initial_state(
            work,
            np.full(4, 8, np.int64),
            pack_rules(own, (0, 1), first, 32),
            np.zeros((1, 1)),
            np.zeros(INPUTS),
            0.0,
            job_costs(work, own),
        )
        values = np.zeros(len(work))
        waiting_keys(sim, now, values)
        for j in range(len(work)):
            run_s, gpus = work.duration_ms[j] / 1000.0, float(work.gang[j])
            submit_s, wait_s = work.submit_ms[j] / 1000.0, (now - work.submit_ms[j]) / 1000.0
            expected = {
                "fcfs": keys.fcfs(submit_s),
                "smallest_first": keys.smallest_first(gpus),
                "sjf": keys.sjf(run_s),
                "saf": keys.saf(run_s, gpus),
                "f1": keys.f1(run_s, gpus, (work.submit_ms[j] - first) / 1000.0),
                "wfp3": keys.wfp3(wait_s, run_s, gpus),
                "unicep": keys.unicep(wait_s, run_s, gpus),
                "multifactor": keys.multifactor(wait_s, gpus, 32.0, 0.0),
                "las": keys.las(0.0),
                "srtf": keys.srtf(run_s),
                "srsf": math.log(keys.srsf(run_s, gpus)),
            }
            assert values[j] == expected[policy]
    assert "fcfs" in POLICIES


@njit
def learned_scores(
    jobs: Any,
    p: Any,
    context: Any,
    capacity: float,
    theta: Any,
    hidden: Any,
    forecasts: Any,
    running: Any,
    restarts: Any,
    values: Any,
) -> None:
    learned.apply_context(theta, hidden, context[0], context[1], context[2], context[3])
    for j in range(len(jobs)):
        learned.set_job_features(jobs[j], p[j], capacity)
        forecast.take_logarithms(forecasts[j])
        values[j] = -learned.key_of(jobs[j], forecasts[j], running[j], restarts[j], theta, hidden)


@njit
def look_at_all(p: Any, attained_s: Any, forecasts: Any) -> None:
    for j in range(len(p)):
        forecast.fill_forecast(p[j], attained_s[j], forecasts[j])


def test_a_forecast_equals_that_of_history() -> None:
    random, count = np.random.default_rng(9), 300
    p = random.dirichlet(np.full(history.BINS, 0.5), count)
    attained_s = np.concatenate(([0.0, 1.0, 1e9], 2.0 ** random.uniform(-1, 25, count - 3)))
    forecasts = state.table(state.ForecastRow, count)
    look_at_all(p, attained_s, forecasts)
    for j in range(count):
        assert forecasts[j].left_s == history.mean_left_s(p[j], attained_s[j])
        assert forecasts[j].gittins_s == history.gittins_s(p[j], attained_s[j])


def test_the_learned_score_is_that_of_the_network_on_the_live_features() -> None:
    random, count, waiting = np.random.default_rng(8), 30, 18
    p = random.dirichlet(np.full(history.BINS, 0.3), count)
    gpus = random.choice([1.0, 2.0, 8.0, 32.0], count)
    running = np.arange(count) >= waiting
    attained_s = np.where(running, random.uniform(1, 5000, count), 0.0)
    restarts = random.integers(0, 3, count)
    nothing = np.zeros(count)
    view = view_of(
        now_s=0.0,
        capacity_gpus=64.0,
        used_gpus=40.0,
        waiting=waiting,
        job_ids=np.arange(count),
        running=running,
        tenant=np.zeros(count, np.intp),
        tier=nothing,
        submit_s=nothing,
        wait_s=nothing,
        gpus=gpus,
        workers=nothing,
        preemptible=nothing,
        restart_s=nothing,
        checkpoint_interval_s=nothing,
        since_go_s=attained_s,
        kept_s=nothing,
        attained_s=attained_s,
        ran_s=nothing,
        restarts=restarts.astype(float),
        walltime_s=nothing,
        duration_s=nothing,
        p10_s=np.array([history.quantile_s(q, 0.1) for q in p]),
        p50_s=nothing,
        p90_s=np.array([history.quantile_s(q, 0.9) for q in p]),
        mean_s=nothing,
        samples=nothing,
        left_kept_s=np.array([history.mean_left_s(q, 0.0) for q in p]),
        gittins_kept_s=np.array([history.gittins_s(q, 0.0) for q in p]),
        base_score=nothing,
        rows=np.arange(count),
        distributions=p,
    )
    x, context = compute_features(view)
    model = MODEL.read_bytes()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x, "context": context})
    theta = theta_of(model)
    jobs = state.table(state.JobRow, count)
    jobs["gang"] = gpus
    forecasts, values = state.table(state.ForecastRow, count), np.zeros(count)
    look_at_all(p, attained_s, forecasts)
    learned_scores(
        jobs,
        p,
        context.astype(np.float64),
        64.0,
        theta,
        np.zeros(1 + (len(theta) - INPUTS) // PER_HIDDEN),
        forecasts,
        running.astype(float),
        restarts,
        values,
    )
    assert np.ptp(values) > 1
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4)
