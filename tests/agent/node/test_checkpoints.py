"""The newest checkpoint of each worker is sent, once, and seldom."""

from __future__ import annotations

import pytest

from berth_agent.messages import Checkpoint
from berth_agent.node import checkpoints as module
from berth_agent.node.checkpoints import EVERY_MS, TICK_MS, Checkpoints
from berth_agent.telemetry_door import Written


class Clock:
    """CLOCK_BOOTTIME of the test."""

    def __init__(self) -> None:
        self.now_ms = 5_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "boot_ms", lambda: clock.now_ms)
    return clock


def note(kept: Checkpoints, clock: Clock, step: int, name: str = "0/5/0/0") -> None:
    kept.note(name, Written(step, clock.now_ms))


def due(kept: Checkpoints, most: int = 9, start_ms: int = 1_000_000) -> tuple[Checkpoint, ...]:
    """Of workers whose processes started 1000 s after the boot."""
    return kept.due(most, lambda name: round(start_ms / TICK_MS))


def test_the_time_counts_from_the_start_of_the_worker(clock: Clock) -> None:
    kept = Checkpoints()
    note(kept, clock, 7)
    assert due(kept) == (Checkpoint(allocation_id="0/5/0/0", ran_ms=4_000_000, step=7),)


def test_a_checkpoint_waits_until_the_start_of_its_worker_is_noted(clock: Clock) -> None:
    kept = Checkpoints()
    note(kept, clock, 1)
    assert due(kept, start_ms=0) == ()
    clock.now_ms += 700
    assert [checkpoint.ran_ms for checkpoint in due(kept)] == [4_000_000]


def test_a_worker_is_sent_seldom_and_then_its_newest(clock: Clock) -> None:
    kept = Checkpoints()
    sent = 0
    for step in range(10_000):
        note(kept, clock, step)
        if offered := due(kept):
            assert offered[0].step == step
            kept.note_sent(offered)
            sent += 1
        clock.now_ms += 10
    assert sent == 10_000 * 10 // EVERY_MS


def test_what_is_not_acknowledged_is_due_again_and_a_newer_one_is_not_lost(clock: Clock) -> None:
    kept = Checkpoints()
    note(kept, clock, 1)
    offered = due(kept)
    assert due(kept) == offered
    clock.now_ms += 1
    note(kept, clock, 2)
    kept.note_sent(offered)
    assert due(kept) == ()
    clock.now_ms += EVERY_MS
    assert [checkpoint.step for checkpoint in due(kept)] == [2]


def test_a_message_is_bounded_and_workers_that_are_gone_are_forgotten(clock: Clock) -> None:
    kept = Checkpoints()
    for rank in range(5):
        note(kept, clock, 1, f"0/5/0/{rank}")
    assert len(due(kept, 3)) == 3
    kept.keep_only({"0/5/0/4"})
    assert [checkpoint.allocation_id for checkpoint in due(kept)] == ["0/5/0/4"]
