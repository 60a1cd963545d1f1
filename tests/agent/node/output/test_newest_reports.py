"""The newest checkpoint and progress of each worker are sent, once, and seldom."""

from __future__ import annotations

import pytest

from berth_agent.core.progress_meter import MeasuredProgress
from berth_agent.messages import Checkpoint, Progress
from berth_agent.node.output import newest_reports as module
from berth_agent.node.output.newest_reports import (
    CHECKPOINTS_MS,
    NewestReports,
    checkpoints,
    progress,
)
from berth_agent.telemetry_receiver import WrittenCheckpoint


class Clock:
    """CLOCK_BOOTTIME of the test."""

    def __init__(self) -> None:
        self.now_ms = 5_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "boot_ms", lambda: clock.now_ms)
    return clock


def note(
    kept: NewestReports[WrittenCheckpoint, Checkpoint],
    clock: Clock,
    step: int,
    name: str = "0/5/0/0",
) -> None:
    kept.note(name, WrittenCheckpoint(step, clock.now_ms))


def due(
    kept: NewestReports[WrittenCheckpoint, Checkpoint], most: int = 9, start_ms: int = 1_000_000
) -> tuple[Checkpoint, ...]:
    """Of workers whose programs began 1000 s after the boot."""
    return kept.due(most, lambda name: start_ms)


def test_the_time_counts_from_the_start_of_the_worker(clock: Clock) -> None:
    kept = checkpoints()
    note(kept, clock, 7)
    assert due(kept) == (Checkpoint(allocation_id="0/5/0/0", ran_ms=4_000_000, step=7),)


def test_a_checkpoint_waits_until_the_start_of_its_worker_is_noted(clock: Clock) -> None:
    kept = checkpoints()
    note(kept, clock, 1)
    assert due(kept, start_ms=0) == ()
    clock.now_ms += 700
    assert [checkpoint.ran_ms for checkpoint in due(kept)] == [4_000_000]


def test_a_worker_is_sent_seldom_and_then_its_newest(clock: Clock) -> None:
    kept = checkpoints()
    sent = 0
    for step in range(10_000):
        note(kept, clock, step)
        if offered := due(kept):
            assert offered[0].step == step
            kept.note_sent(offered)
            sent += 1
        clock.now_ms += 10
    assert sent == 10_000 * 10 // CHECKPOINTS_MS


def test_what_is_not_acknowledged_is_due_again_and_a_newer_one_is_not_lost(clock: Clock) -> None:
    kept = checkpoints()
    note(kept, clock, 1)
    offered = due(kept)
    assert due(kept) == offered
    clock.now_ms += 1
    note(kept, clock, 2)
    kept.note_sent(offered)
    assert due(kept) == ()
    clock.now_ms += CHECKPOINTS_MS
    assert [checkpoint.step for checkpoint in due(kept)] == [2]


def test_a_message_is_bounded_and_workers_that_are_gone_are_forgotten(clock: Clock) -> None:
    kept = checkpoints()
    for rank in range(5):
        note(kept, clock, 1, f"0/5/0/{rank}")
    assert len(due(kept, 3)) == 3
    kept.keep_only({"0/5/0/4"})
    assert [checkpoint.allocation_id for checkpoint in due(kept)] == ["0/5/0/4"]


def test_progress_has_the_pace_of_the_node(clock: Clock) -> None:
    kept = progress()
    kept.note("0/5/0/0", MeasuredProgress(40, 100, 1.5, clock.now_ms))
    wanted = Progress(
        allocation_id="0/5/0/0", ran_ms=4_000_000, step=40, steps_total=100, iteration_s=1.5
    )
    assert kept.due(9, lambda name: 1_000_000) == (wanted,)
