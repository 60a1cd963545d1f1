"""Figures of a pool against a life of jobs that is known by heart."""

from __future__ import annotations

from services.placement.core.pool.state import Pool
from services.placement.figures import figures
from shared.telemetry.metric_names import METRICS
from tests.services.placement.core.lane import Lane, job, lane, left
from tests.shared.ledger_events import node_joined


def published(pool: Lane, after_ms: int = 0) -> dict[tuple[str, ...], float]:
    result = list(figures(pool.state, pool.now + after_ms))
    for name, _, labels in result:
        assert len(labels) == len(METRICS[name].labels), name
    assert len({(name, labels) for name, _, labels in result}) == len(result)
    return {(name.removeprefix("berth_"), *labels): value for name, value, labels in result}


def test_gpus_are_held_and_free_ones_apart() -> None:
    pool = lane("n1", "n2")
    pool.submit(job("a", 6))
    result = published(pool)
    assert result["gpus", "p", "a100"] == 16
    assert result["gpus_held", "p", "a100"] == 6
    assert result["gpu_utilization_ratio", "p"] == 6 / 16
    assert result["fragmentation_ratio", "p"] == 2 / 10
    assert result["jobs", "p", "placed"] == 1


def test_the_oldest_waiting_job_and_what_all_of_them_want() -> None:
    pool = lane("n1")
    pool.submit(job("a", 8))
    pool.submit(job("b", 8), after_ms=1000)
    pool.submit(job("c", 4), after_ms=1000)
    result = published(pool, after_ms=3000)
    assert result["jobs", "p", "waiting"] == 2
    assert result["queue_gpus", "p"] == 12
    assert result["queue_oldest_wait_seconds", "p"] == 4


def test_an_empty_queue_has_waited_for_nothing() -> None:
    result = published(lane("n1"), after_ms=60_000)
    assert result["queue_oldest_wait_seconds", "p"] == result["undecided_seconds", "p"] == 0


def test_what_no_round_has_looked_at_grows_old() -> None:
    pool = lane("n1")
    pool.submit(job("a", 8))
    pool.submit(job("b", 8), after_ms=1000)
    assert published(pool, after_ms=60_000)["undecided_seconds", "p"] == 0
    pool.state.touch(pool.now)
    assert published(pool, after_ms=60_000)["undecided_seconds", "p"] == 60


def test_nodes_that_are_cordoned_lost_or_suspected() -> None:
    pool = lane("n1", "n2", "n3", "n4")
    pool.submit(job("a", 8))
    (holder,) = pool.nodes_of("a")
    pool.report(left(holder))
    pool.silent("n4", silent_ms=30_000)
    pool.state.cordons["n2" if holder != "n2" else "n1"] = False
    pool.state.board.suspect("n3", "f", 2.0, None)
    result = published(pool)
    assert result["nodes", "p", "lost"] == result["nodes", "p", "cordoned"] == 1
    assert result["nodes", "p", "alive"] == result["nodes_suspected", "p"] == 1
    assert result["nodes", "p", "silent"] == 1
    assert result["workers_stuck", "p"] == result["nodes", "p", "held_back"] == 0
    pool.state.held_back["n2"] = node_joined("n2", backend="agent")
    assert published(pool)["nodes", "p", "held_back"] == 1
    pool.state.stuck["0/1/2/0"] = "n3"
    assert published(pool)["workers_stuck", "p"] == 1


def test_a_lane_without_a_pool_says_nothing() -> None:
    assert list(figures(Pool(0), 1)) == []
