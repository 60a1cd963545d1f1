"""Iterations wait for the executor within bounds, and processes take turns."""

from __future__ import annotations

from berth_agent.core.iteration_rows import MAX_ITERATIONS, IterationRow, IterationRows
from berth_agent.node.output.unsent_iterations import ITERATION_BYTES, UnsentIterations
from berth_agent.telemetry_receiver import MAX_PROCESSES


def one_row(step: int) -> IterationRows:
    return IterationRows([IterationRow(step, 0.5)])


def test_what_came_in_several_reads_is_one_message() -> None:
    unsent = UnsentIterations()
    unsent.add("a", 0, {0: one_row(1), 4: one_row(1)})
    unsent.add("a", 0, {0: one_row(2)})
    sent = unsent.due(10)
    assert [(one.process, one.steps) for one in sent] == [(0, (1, 2)), (4, (1,))]
    unsent.note_sent(sent)
    assert unsent.due(10) == ()


def test_a_process_that_was_sent_waits_behind_the_others() -> None:
    unsent = UnsentIterations()
    for name in ("a", "b"):
        unsent.add(name, 0, {0: one_row(1)})
    first = unsent.due(1)
    unsent.note_sent(first)
    unsent.add("a", 0, {0: one_row(2)})
    assert [one.allocation_id for one in (*first, *unsent.due(2))] == ["a", "b", "a"]


def test_a_worker_that_changes_its_ranks_takes_no_more_room() -> None:
    unsent = UnsentIterations()
    for rank in range(100 * MAX_PROCESSES):
        unsent.add("a", 0, {rank: one_row(1)})
    assert len(unsent.due(1000)) == MAX_PROCESSES


def test_a_message_is_bounded_in_bytes() -> None:
    unsent = UnsentIterations()
    for number in range(200):
        rows = IterationRows(IterationRow(step, 0.5) for step in range(MAX_ITERATIONS))
        unsent.add(f"worker-{number}", 0, {0: rows})
    assert 1 < len(unsent.due(1000)) < 200
    assert ITERATION_BYTES < 640 * 1024


def test_workers_that_are_gone_are_forgotten() -> None:
    unsent = UnsentIterations()
    unsent.add("a", 0, {0: one_row(1)})
    unsent.add("b", 0, {0: one_row(1)})
    unsent.keep_only({"b"})
    assert [one.allocation_id for one in unsent.due(10)] == ["b"]
