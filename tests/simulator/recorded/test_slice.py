"""A made-up ledger, replayed: every outcome by hand."""

from __future__ import annotations

import pytest

from shared.contracts.attempts import JobResized
from shared.contracts.nodes import NodeCordoned, NodeUncordoned
from shared.contracts.placement import Allocation
from simulator.recorded.league import under
from simulator.recorded.slice import InsufficientHistory, RecordedSlice, part_of_past
from simulator.recorded.what_if import simulated_outcome
from tests.simulator.recorded.past import PoolLedger, three_jobs

NEAR_S = 1.0
"""A round comes a few ms of a clock that is 60 times slower after what it decides on."""


def waits_s(part: RecordedSlice) -> dict[str, float]:
    """Return the first wait of each job."""
    wait_s = simulated_outcome(part).wait_s.tolist()
    return dict(zip((job.job_id for job in part.jobs), wait_s, strict=True))


def test_the_recorded_order_gives_the_recorded_waits() -> None:
    part = part_of_past(three_jobs().read(0, 0, 2000))
    assert part.counted.tolist() == [True, True, True]
    assert (part.left_out, part.carried, part.mean_gpus) == ({}, 0, 8)
    assert waits_s(part) == pytest.approx({"a": 0, "b": 901, "c": 1301}, abs=NEAR_S)


def test_the_shortest_first_lets_the_last_job_pass() -> None:
    part = part_of_past(three_jobs().read(0, 0, 2000))
    shortest = under(part, {"base_policy": "sjf", "runtime": "oracle"})
    assert waits_s(shortest) == pytest.approx({"a": 0, "b": 1001, "c": 801}, abs=NEAR_S)


def test_a_higher_class_is_as_recorded() -> None:
    ledger = PoolLedger()
    ledger.join(0)
    ledger.enqueue(1, "a", 1000, preemptible=False)
    ledger.start(1, "a")
    ledger.enqueue(100, "b", 500)
    ledger.enqueue(200, "c", 100, priority_class="high")
    ledger.end(1001, "a")
    ledger.start(1001, "c")
    ledger.end(1101, "c")
    ledger.start(1101, "b")
    ledger.end(1601, "b")
    part = part_of_past(ledger.read(0, 0, 2000))
    assert waits_s(part) == pytest.approx({"a": 0, "b": 1001, "c": 801}, abs=NEAR_S)


def test_jobs_under_way_at_the_beginning_are_load_with_what_is_left_of_them() -> None:
    """At 500 s `a` has 501 s left, `b` and `c` wait; `d` comes last and is alone counted."""
    ledger = three_jobs()
    ledger.enqueue(600, "d", 50)
    ledger.start(1601, "d")
    ledger.end(1651, "d")
    part = part_of_past(ledger.read(500, 500, 700))
    assert [job.job_id for job in part.jobs] == ["a", "b", "c", "d"]
    assert part.counted.tolist() == [False, False, False, True]
    assert part.carried == 3
    left_s = [job.duration_s for job in part.scenario.jobs]
    assert left_s == pytest.approx([501, 500, 100, 50], abs=0.1)
    assert waits_s(part)["d"] == pytest.approx(1001, abs=5 * NEAR_S)


def test_jobs_that_come_after_the_end_compete_as_long_as_a_counted_one_waits() -> None:
    part = part_of_past(three_jobs().read(0, 0, 150))
    assert [job.job_id for job in part.jobs] == ["a", "b", "c"]
    assert part.counted.tolist() == [True, True, False]
    shortest = under(part, {"base_policy": "sjf", "runtime": "oracle"})
    assert waits_s(shortest)["b"] == pytest.approx(1001, abs=NEAR_S)


def test_a_node_that_joined_later_takes_no_job_before() -> None:
    ledger = PoolLedger()
    ledger.join(0, "n1")
    ledger.enqueue(1, "a", 1000)
    ledger.start(1, "a")
    ledger.enqueue(100, "b", 500)
    ledger.join(300, "n2")
    ledger.start(300, "b", "n2")
    ledger.end(800, "b", "n2")
    ledger.end(1001, "a")
    part = part_of_past(ledger.read(0, 0, 1000))
    assert part.mean_gpus == pytest.approx(8 + 8 * 0.7)
    assert waits_s(part) == pytest.approx({"a": 0, "b": 200}, abs=NEAR_S)


def test_a_cordoned_node_takes_no_job_until_it_is_opened() -> None:
    ledger = PoolLedger()
    ledger.join(0)
    ledger.write(50, NodeCordoned(node_id="n1"))
    ledger.enqueue(100, "a", 10)
    ledger.write(400, NodeUncordoned(node_id="n1"))
    ledger.start(400, "a")
    ledger.end(410, "a")
    assert waits_s(part_of_past(ledger.read(0, 0, 500)))["a"] == pytest.approx(300, abs=NEAR_S)


def test_jobs_without_a_known_run_time_are_named_by_reason() -> None:
    """One that still runs holds its GPUs in the replay for as long as it has."""
    ledger = three_jobs()
    ledger.enqueue(300, "gone", 5)
    ledger.cancel(310, "gone")
    ledger.enqueue(320, "measures", 5, validates=("n1",))
    ledger.enqueue(330, "waits", 5)
    ledger.enqueue(340, "grows", 5)
    ledger.start(1601, "grows")
    slot = Allocation(rank=0, node_id="n1", gpus=(0,))
    own = {"job_id": "grows", "tenant": "t", "attempt": 1}
    ledger.write(
        1650, JobResized(**own, reason="grow", from_workers=1, to_workers=2, target=(slot,))
    )
    ledger.start(1660, "grows")
    ledger.end(1700, "grows")
    ledger.enqueue(350, "runs", 5)
    ledger.start(1700, "runs")
    ledger.write(1800, ledger.pool)
    part = part_of_past(ledger.read(0, 0, 1900))
    assert part.left_out == {
        "ended before it ran": 1,
        "measurement of nodes": 1,
        "still waiting": 1,
        "resized": 1,
        "still running": 1,
    }
    assert [job.job_id for job in part.jobs] == ["a", "b", "c", "grows", "runs"]
    assert part.counted.tolist() == [True, True, True, False, False]
    assert part.scenario.jobs[-1].duration_s == pytest.approx(100, abs=0.1)


def test_a_time_without_ended_jobs_is_an_error() -> None:
    ledger = PoolLedger()
    ledger.join(0)
    ledger.enqueue(10, "a", 5)
    with pytest.raises(InsufficientHistory, match="1 jobs arrived, of which 0 ended"):
        part_of_past(ledger.read(0, 0, 100))
