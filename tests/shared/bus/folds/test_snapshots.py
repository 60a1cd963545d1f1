from __future__ import annotations

import hashlib
import os
import pickle
import time
from pathlib import Path

import pytest

from shared.bus.folds.snapshots import ABANDONED_S, KEEP, Snapshots
from shared.ledger.reader import Cursor
from tests.shared.bus.full_disk import full_disk


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots[object]:
    return Snapshots(tmp_path, "admission", 0, "s1")


def store(snapshots: Snapshots[object], seq: int, state: object) -> None:
    snapshots.store(seq, snapshots.pack(Cursor(seq, seq, f"r{seq}", seq - 1), state))


def loaded(snapshots: Snapshots[object]) -> object:
    snapshot = snapshots.load()
    return None if snapshot is None else (snapshot.cursor.seq, snapshot.state)


def newest(folder: Path) -> Path:
    return sorted(folder.glob("*.snapshot"))[-1]


def test_the_newest_snapshot_is_loaded_and_old_ones_are_deleted(
    snapshots: Snapshots[object], tmp_path: Path
) -> None:
    for seq in (9, 10, 100):
        store(snapshots, seq, f"state {seq}")
    assert loaded(snapshots) == (100, "state 100")
    assert len(list(tmp_path.glob("*.snapshot"))) == KEEP


def test_a_packed_state_is_a_copy(snapshots: Snapshots[object]) -> None:
    state = ["before"]
    packed = snapshots.pack(Cursor(1, 1, "r1", 0), state)
    state.append("after")
    snapshots.store(1, packed)
    assert loaded(snapshots) == (1, ["before"])


def test_the_digest_is_made_when_a_snapshot_is_stored(
    snapshots: Snapshots[object], tmp_path: Path
) -> None:
    """It takes half as long as the copy, which holds the loop."""
    packed = snapshots.pack(Cursor(1, 1, "r1", 0), ["state"])
    snapshots.store(1, packed)
    assert newest(tmp_path).read_bytes() == hashlib.sha256(packed).digest() + packed


@pytest.mark.parametrize("damage", [b"", b"short", b"\x00" * 100])
def test_a_damaged_snapshot_is_ignored_for_the_one_before(
    snapshots: Snapshots[object], tmp_path: Path, damage: bytes
) -> None:
    store(snapshots, 1, "old")
    store(snapshots, 2, "new")
    newest(tmp_path).write_bytes(damage)
    assert loaded(snapshots) == (1, "old")


def test_a_snapshot_of_other_code_is_ignored(
    snapshots: Snapshots[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(body: bytes) -> object:
        raise AttributeError("Removed")

    store(snapshots, 1, "state")
    monkeypatch.setattr(pickle, "loads", missing)
    assert loaded(snapshots) is None


@pytest.mark.parametrize(
    ("ledger", "partition", "schema"),
    [("placement", 0, "s1"), ("admission", 1, "s1"), ("admission", 0, "s2")],
)
def test_each_ledger_partition_and_schema_has_its_own_snapshots(
    snapshots: Snapshots[object], tmp_path: Path, ledger: str, partition: int, schema: str
) -> None:
    store(snapshots, 1, "state")
    other: Snapshots[object] = Snapshots(tmp_path, ledger, partition, schema)
    assert loaded(other) is None


def test_snapshots_of_the_key_before_are_kept_and_older_ones_deleted(tmp_path: Path) -> None:
    for number, key in enumerate(("k1", "k2", "k3")):
        store(Snapshots(tmp_path, "admission", 0, key), 1, key)
        (stored,) = tmp_path.glob(f"admission-0-{key}-*")
        os.utime(stored, (number, number))
    other_lane: Snapshots[object] = Snapshots(tmp_path, "admission", 1, "k0")
    store(other_lane, 1, "other")
    store(Snapshots(tmp_path, "admission", 0, "k3"), 2, "k3")
    assert sorted(path.name.split("-", 2)[2][:2] for path in tmp_path.glob("admission-0-*")) == [
        "k2",
        "k3",
        "k3",
    ]
    assert loaded(other_lane) == (1, "other")


@pytest.mark.parametrize("suffix", ["snapshot", "mark"])
def test_what_killed_processes_left_half_written_is_deleted(
    snapshots: Snapshots[object], tmp_path: Path, suffix: str
) -> None:
    store(snapshots, 1, "state")
    snapshots.mark(Cursor())
    (whole,) = tmp_path.glob(f"*.{suffix}")
    abandoned, in_progress = (whole.with_suffix(f".{n}.half") for n in "ab")
    of_another = tmp_path / "admission-01.c.half"
    for half in (abandoned, in_progress, of_another):
        half.write_bytes(b"half")
    long_ago = time.time() - ABANDONED_S - 60
    for half in (abandoned, of_another):
        os.utime(half, (long_ago, long_ago))
    store(snapshots, 2, "state")
    assert not abandoned.exists()
    assert in_progress.exists() and of_another.exists()


def test_a_full_disk_keeps_what_was_stored_and_gets_no_more_files(
    snapshots: Snapshots[object], tmp_path: Path
) -> None:
    first = Cursor(1, 1, "r1", 0)
    snapshots.mark(first)
    store(snapshots, 1, "state")
    before = sorted(tmp_path.iterdir())
    with full_disk():
        with pytest.raises(OSError, match="No space left"):
            snapshots.mark(Cursor(2, 2, "r2", 1))
        with pytest.raises(OSError, match="No space left"):
            store(snapshots, 2, "newer")
    assert sorted(tmp_path.iterdir()) == before
    assert (snapshots.marked(), loaded(snapshots)) == (first, (1, "state"))


def test_a_mark_is_read_back_and_a_damaged_one_is_empty(
    snapshots: Snapshots[object], tmp_path: Path
) -> None:
    assert snapshots.marked() == Cursor()
    cursor = Cursor(7, 3, "id", 5, 99, {"commands-0": 4})
    snapshots.mark(cursor)
    assert snapshots.marked() == cursor
    (mark,) = tmp_path.glob("*.mark")
    mark.write_bytes(mark.read_bytes()[:-5])
    assert snapshots.marked() == Cursor()
