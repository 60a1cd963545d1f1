"""Conformance tests T4 and T5 of the GFS card, on nodes of eight GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.placement.core.spot.places import SpotNodes, packed
from services.placement.core.spot.victims import (
    Choose,
    EvictionCosts,
    JobsByRow,
    LeastCost,
    RunningSpot,
    first_victims,
    needed,
    preempt,
)

COSTS = EvictionCosts(failed=5, kept=95, pool_gpu_s=1e6)
CHOICES: list[Choose] = [first_victims, LeastCost(COSTS)]


def pool_of(
    guaranteed: list[int], spots: list[list[tuple[int, int]]], lost_gpu_s: list[float]
) -> tuple[SpotNodes, JobsByRow]:
    """Return nodes of 8 GPUs with guaranteed GPUs by row, and jobs of (row, GPUs)."""
    nodes = SpotNodes.of(np.full(len(guaranteed), 8, np.int64))
    for row, gpus in enumerate(guaranteed):
        nodes.take(row, gpus, is_spot=False)
    jobs: dict[int, list[RunningSpot]] = {}
    for number, (rows, lost) in enumerate(zip(spots, lost_gpu_s, strict=True)):
        job = RunningSpot(f"s{number}", tuple(rows), lost)
        for row, gpus in rows:
            nodes.take(row, gpus, is_spot=True)
            jobs.setdefault(row, []).append(job)
    return nodes, jobs


def test_the_dearest_job_is_spared_as_long_as_enough_remains() -> None:
    jobs = [RunningSpot(f"s{gpus}", ((0, gpus),), lost) for gpus, lost in [(2, 9), (4, 5), (2, 1)]]
    assert [job.job_id for job in needed(0, 4, 0, jobs)] == ["s4"]
    assert [job.job_id for job in needed(0, 2, 0, jobs)] == ["s2"]
    assert needed(0, 2, 0, jobs)[0].lost_gpu_s == 1
    assert needed(4, 4, 0, jobs) == []


def test_one_large_victim_costs_less_than_eight_small_ones() -> None:
    small: list[list[tuple[int, int]]] = [[(0, 1)] for _ in range(8)]
    nodes, jobs = pool_of([0, 0], [*small, [(1, 8)]], [1.0] * 8 + [5000.0])
    preemption = preempt(nodes, 1, 8, jobs, packed, LeastCost(COSTS))
    assert preemption is not None
    assert preemption.victims == ["s8"]
    assert preempt(nodes, 1, 8, jobs, packed, first_victims) is not None


def test_of_as_many_victims_the_least_lost_work_yields() -> None:
    nodes, jobs = pool_of([0, 0], [[(0, 8)], [(1, 8)]], [900.0, 100.0])
    preemption = preempt(nodes, 1, 8, jobs, packed, LeastCost(COSTS))
    assert preemption is not None
    assert (preemption.rows, preemption.victims) == ([1], ["s1"])


def test_a_second_worker_uses_what_the_first_victim_left_elsewhere() -> None:
    nodes, jobs = pool_of([0, 0, 0], [[(0, 8), (1, 8)], [(2, 8)]], [10.0, 20.0])
    preemption = preempt(nodes, 2, 8, jobs, packed, LeastCost(COSTS))
    assert preemption is not None
    assert preemption.victims == ["s0"]
    assert sorted(preemption.rows) == [0, 1]


def test_a_gang_for_which_too_few_gpus_yield_evicts_none() -> None:
    nodes, jobs = pool_of([4, 0], [[(1, 8)]], [1.0])
    for choose in CHOICES:
        assert preempt(nodes, 2, 8, jobs, packed, choose) is None
    assert nodes.free.tolist() == [4, 0]


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[int], list[list[tuple[int, int]]], list[float]]:
    guaranteed = draw(st.lists(st.integers(0, 8), min_size=1, max_size=5))
    free = [8 - gpus for gpus in guaranteed]
    spots: list[list[tuple[int, int]]] = []
    for _ in range(draw(st.integers(0, 10))):
        gpus = draw(st.sampled_from([1, 2, 4, 8]))
        rows = [row for row, own in enumerate(free) if own >= gpus]
        rows = rows[: draw(st.integers(1, 2))]
        if rows:
            spots.append([(row, gpus) for row in rows])
            for row in rows:
                free[row] -= gpus
    lost = [float(draw(st.integers(0, 1000))) for _ in spots]
    return guaranteed, spots, lost


@pytest.mark.parametrize("choose", CHOICES)
@given(pools(), st.integers(1, 4), st.sampled_from([1, 2, 4, 8]))
def test_victims_free_enough_and_are_spot_jobs_once_each(
    choose: Choose,
    pool: tuple[list[int], list[list[tuple[int, int]]], list[float]],
    workers: int,
    gpus: int,
) -> None:
    """T4: also nothing that is passed changes, and no room means no victim."""
    nodes, jobs = pool_of(*pool)
    before = nodes.copy()
    preemption = preempt(nodes, workers, gpus, jobs, packed, choose)
    assert (nodes.free == before.free).all()
    assert (nodes.spot == before.spot).all()
    open_gpus = nodes.free + nodes.spot
    assert (preemption is not None) == (int((open_gpus // gpus).sum()) >= workers)
    if preemption is None:
        return
    assert len(set(preemption.victims)) == len(preemption.victims)
    running = {job.job_id: job for own in jobs.values() for job in own}
    for name in preemption.victims:
        for row, held in running[name].gpus_by_row:
            nodes.take(row, -held, is_spot=True)
    for row in preemption.rows:
        nodes.take(row, gpus, is_spot=False)
    assert len(preemption.rows) == workers
    assert nodes.free.min() >= 0
    if int((before.free // gpus).sum()) >= workers:
        assert preemption.victims == []
