"""The queue: its order, reservations and departures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from simulator.kernel import queue, state
from simulator.kernel.codes import CONTEXT_MS, LEARNED, MULTIFACTOR, WAITING, WFP3
from simulator.kernel.state import PackedRules, Sim
from tests.simulator.kernel.interpreted import interpret


@pytest.fixture(autouse=True)
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    interpret(monkeypatch, queue)


def rules(policy: int) -> PackedRules:
    return cast(PackedRules, SimpleNamespace(policy=policy))


def waiting(*jobs: int, count: int = 6) -> Any:
    """Return what the queue's functions read of a simulation in which these jobs wait."""
    sim = SimpleNamespace(
        pool=state.table(state.PoolState, 1)[0],
        scan=state.table(state.ScanState, 1)[0],
        jobs=state.table(state.JobRow, count),
        queue=np.zeros(count, np.int64),
        round_queue=np.zeros(count, np.int64),
        started_positions=np.zeros(count, np.int64),
    )
    sim.queue[: len(jobs)] = jobs
    sim.pool.waiting = len(jobs)
    for job in jobs:
        sim.jobs[job].state = WAITING
    return cast(Sim, sim)


def test_a_job_goes_behind_equal_keys_of_greater_seniority() -> None:
    sim = waiting(0, 1, 2, 3)
    for job, (key, seniority) in enumerate([(1.0, 0), (2.0, 1), (2.0, 5), (3.0, 2), (2.0, 4)]):
        sim.jobs[job].key, sim.jobs[job].seniority = key, seniority
    assert queue.queue_position(sim.queue, 4, sim.jobs, 4) == 2
    assert queue.queue_position(sim.queue, 0, sim.jobs, 4) == 0


def test_jobs_with_a_reservation_go_first_in_a_round() -> None:
    sim = waiting(3, 1, 4, 2)
    sim.jobs[4].reservation_round = 7
    queue.order_round(sim)
    assert sim.round_queue[:4].tolist() == [3, 1, 4, 2], "the pool counts none"
    sim.pool.reservations = 1
    queue.order_round(sim)
    assert sim.round_queue[:4].tolist() == [4, 3, 1, 2]


def test_a_reservation_lasts_for_the_round_after_its_evictions() -> None:
    sim = waiting(0, 1)
    sim.pool.rounds, sim.pool.reservations = 5, 2
    sim.jobs[0].reservation_round, sim.jobs[1].reservation_round = 4, 5
    queue.expire_reservations(sim)
    assert [int(job.reservation_round) for job in sim.jobs[:2]] == [0, 5]
    assert sim.pool.reservations == 1


def test_started_jobs_leave_the_queue_in_its_order() -> None:
    sim = waiting(5, 3, 1, 0)
    sim.jobs[3].state = sim.jobs[0].state = WAITING + 1
    sim.started_positions[0] = 1
    queue.remove_started(sim)
    assert (sim.queue[: sim.pool.waiting].tolist(), int(sim.pool.waiting)) == ([5, 1], 2)


def test_keys_age_under_the_policies_that_weigh_the_wait() -> None:
    assert queue.is_aging(rules(WFP3)) and queue.is_aging(rules(MULTIFACTOR))
    assert not queue.is_aging(rules(LEARNED))


def test_only_networks_need_a_context_and_not_at_every_ranking() -> None:
    pool = state.table(state.PoolState, 1)[0]
    pool.context_at_ms = 1000
    assert not queue.mark_ranked(pool, rules(LEARNED), 1000 + CONTEXT_MS - 1)
    assert queue.mark_ranked(pool, rules(LEARNED), 1000 + CONTEXT_MS)
    assert not queue.mark_ranked(pool, rules(WFP3), 1000 + CONTEXT_MS)
    assert pool.ranked_at_ms == 1000 + CONTEXT_MS
