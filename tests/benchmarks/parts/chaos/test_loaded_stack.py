"""The state of a job follows from the events of placement."""

from __future__ import annotations

from typing import cast

from benchmarks.parts.chaos.burst import waits_s
from benchmarks.parts.chaos.loaded_stack import LoadedStack
from benchmarks.parts.stack import Bench


def loaded() -> LoadedStack:
    return LoadedStack(cast("Bench", None), per_s=1.0, report_line=lambda line: None)


def test_a_job_is_outstanding_until_it_has_ended() -> None:
    stack = loaded()
    stack.expect("j1")
    stack.observe("job.placed.v1", "j1", 5.0)
    stack.observe("job.placed.v1", "j1", 9.0)
    assert (stack.outstanding, stack.placed) == (1, {"j1": 5.0})
    stack.observe("job.failed.v1", "j1", 10.0)
    stack.expect("j1")
    assert (stack.outstanding, stack.ended) == (0, {"j1"})


def test_messages_of_executors_are_seen_by_their_events() -> None:
    stack = loaded()
    stack.observe("allocation.released.v1", "j1", 7.0)
    stack.observe("workers.ready.v1", "j1", 6.0)
    stack.observe("job.placed.v1", "j1", 8.0)
    assert stack.executor_event_at == 7.0


def test_waits_are_of_placed_jobs_and_never_negative() -> None:
    stack = loaded()
    stack.placed = {"a": 12.0, "b": 4.999}
    assert waits_s(stack, {"a": 10.0, "b": 5.0, "c": 1.0}) == [2.0, 0.0]
