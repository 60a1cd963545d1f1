from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from shared.bus.clock import LedgerClock
from shared.bus.folds.fold import Replica
from shared.bus.folds.snapshot_policy import COPYING_SHARE, MARK_EVERY_S, SnapshotPolicy
from shared.bus.folds.snapshots import Snapshots
from shared.ledger.reader import Cursor, Reader
from tests.patience import PATIENCE_S
from tests.shared.bus.full_disk import full_disk

EVERY = 10
PAUSE_S = 30.0


class SetClock(LedgerClock):
    """A clock that a test sets."""

    now_s = 1_000.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots[str]:
    return Snapshots(tmp_path, "admission", 0, "s1")


@pytest.fixture
def snapshot_policy(snapshots: Snapshots[str], clock: SetClock) -> SnapshotPolicy[str]:
    return SnapshotPolicy(snapshots, clock, every=EVERY, pause_s=PAUSE_S)


def replica(seq: int, state: str, records: int = EVERY) -> Replica[str]:
    return Replica(Reader("admission", 0, Cursor(seq, seq, f"r{seq}", seq - 1)), state, records)


def stored(snapshots: Snapshots[str]) -> str | None:
    snapshot = snapshots.load()
    return None if snapshot is None else snapshot.state


async def test_a_snapshot_is_due_after_so_many_records(
    snapshot_policy: SnapshotPolicy[str], snapshots: Snapshots[str]
) -> None:
    await snapshot_policy.store_if_due(replica(1, "early", EVERY - 1))
    assert stored(snapshots) is None
    due = replica(2, "due")
    await snapshot_policy.store_if_due(due)
    assert stored(snapshots) == "due"
    assert due.records == 0


async def test_there_is_a_pause_between_two_snapshots(
    snapshot_policy: SnapshotPolicy[str], snapshots: Snapshots[str], clock: SetClock
) -> None:
    await snapshot_policy.store_if_due(replica(1, "first"))
    clock.now_s += PAUSE_S - 1
    second = replica(2, "second")
    await snapshot_policy.store_if_due(second)
    assert stored(snapshots) == "first"
    clock.now_s += 1
    await snapshot_policy.store_if_due(second)
    assert stored(snapshots) == "second"


async def test_a_state_that_takes_long_to_copy_is_copied_less_often(
    snapshot_policy: SnapshotPolicy[str],
    snapshots: Snapshots[str],
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pack, copy_s = snapshots.pack, 0.5

    def slow_pack(cursor: Cursor, state: str) -> bytes:
        clock.now_s += copy_s
        return pack(cursor, state)

    monkeypatch.setattr(snapshots, "pack", slow_pack)
    await snapshot_policy.store_if_due(replica(1, "first"))
    second = replica(2, "second")
    clock.now_s += copy_s / COPYING_SHARE - 1
    await snapshot_policy.store_if_due(second)
    assert stored(snapshots) == "first"
    clock.now_s += 1
    await snapshot_policy.store_if_due(second)
    assert stored(snapshots) == "second"


async def test_the_last_snapshot_waits_for_nothing_but_is_not_repeated(
    snapshot_policy: SnapshotPolicy[str], snapshots: Snapshots[str]
) -> None:
    await snapshot_policy.store(replica(1, "last", records=1))
    await snapshot_policy.store(replica(2, "as new as the last", records=0))
    assert stored(snapshots) == "last"


def test_the_cursor_is_marked_once_in_a_while(
    snapshot_policy: SnapshotPolicy[str], clock: SetClock
) -> None:
    first, second = Cursor(1, 1, "a", 0), Cursor(2, 2, "b", 1)
    assert snapshot_policy.marked() == Cursor()
    snapshot_policy.mark_if_due(first)
    clock.now_s += MARK_EVERY_S / 2
    snapshot_policy.mark_if_due(second)
    assert snapshot_policy.marked() == first
    clock.now_s += MARK_EVERY_S / 2
    snapshot_policy.mark_if_due(second)
    assert snapshot_policy.marked() == second


async def test_a_cursor_that_came_too_soon_is_marked_although_no_other_comes(
    snapshots: Snapshots[str],
) -> None:
    snapshot_policy: SnapshotPolicy[str] = SnapshotPolicy(
        snapshots, LedgerClock(), every=1, pause_s=0.0
    )
    cursors = [Cursor(n, n, f"r{n}", n - 1) for n in range(1, 9)]
    keeping = asyncio.ensure_future(snapshot_policy.keep_marked(lambda: cursors[-1]))
    for cursor in cursors:
        snapshot_policy.mark_if_due(cursor)
    async with asyncio.timeout(PATIENCE_S):
        while snapshot_policy.marked() != cursors[-1]:
            await asyncio.sleep(0.005)
    keeping.cancel()


async def test_a_lane_that_keeps_its_marks_stores_none_on_the_loop(
    snapshots: Snapshots[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    mark = snapshots.mark

    def noted(cursor: Cursor) -> None:
        threads.add(threading.get_ident())
        mark(cursor)

    monkeypatch.setattr(snapshots, "mark", noted)
    snapshot_policy: SnapshotPolicy[str] = SnapshotPolicy(
        snapshots, LedgerClock(), every=1, pause_s=0.0
    )
    cursor = Cursor(1, 1, "a", 0)
    keeping = asyncio.ensure_future(snapshot_policy.keep_marked(lambda: cursor))
    await asyncio.sleep(0)
    snapshot_policy.mark_if_due(cursor)
    assert snapshot_policy.marked() == Cursor()
    async with asyncio.timeout(PATIENCE_S):
        while snapshot_policy.marked() != cursor:
            await asyncio.sleep(0.005)
    keeping.cancel()
    assert threading.get_ident() not in threads


async def test_a_full_disk_is_logged_once_and_the_next_mark_and_snapshot_try_again(
    snapshot_policy: SnapshotPolicy[str],
    snapshots: Snapshots[str],
    clock: SetClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second, due = Cursor(1, 1, "a", 0), Cursor(2, 2, "b", 1), replica(2, "state")
    with full_disk():
        for cursor in (first, second):
            snapshot_policy.mark_if_due(cursor)
            clock.now_s += MARK_EVERY_S
        await snapshot_policy.store_if_due(due)
    assert snapshot_policy.marked() == Cursor() and stored(snapshots) is None
    (record,) = caplog.records
    assert "a mark was not stored: [Errno 28]" in record.message
    assert str(record.__dict__["path"]) == str(snapshots.folder)

    snapshot_policy.mark_if_due(second)
    clock.now_s += PAUSE_S
    await snapshot_policy.store_if_due(due)
    assert snapshot_policy.marked() == second and stored(snapshots) == "state"


async def test_a_lane_without_snapshots_stores_nothing(clock: SetClock) -> None:
    snapshot_policy: SnapshotPolicy[str] = SnapshotPolicy(None, clock, every=1, pause_s=0.0)
    unsaved = replica(1, "state")
    snapshot_policy.mark_if_due(unsaved.cursor)
    await snapshot_policy.store_if_due(unsaved)
    await snapshot_policy.store(unsaved)
    assert snapshot_policy.marked() == Cursor()
    assert unsaved.records == EVERY
