"""A green result is reported even where its mark cannot be stored, and no file is left behind."""

from __future__ import annotations

import fcntl
import logging
import resource
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.verify import marks
from shared.verify.marks import Marks, VerifyMark
from shared.verify.row_store import RowStore
from shared.verify.run import verify
from tests.shared.verify.test_run import World, installation

ROWS = 2_000


def filled() -> RowStore:
    store = RowStore()
    for number in range(ROWS):
        store.put("t", str(number), (number,))
    return store


def suffixes(folder: Path) -> list[str]:
    return sorted(file.suffix for file in folder.iterdir())


@contextmanager
def longest_file(size: int) -> Iterator[None]:
    """Let each write beyond this size in bytes fail, as on a full disk."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_the_old_mark_and_no_other_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Marks(tmp_path).store(VerifyMark(made_ms=1), RowStore())
    kept = filled()
    with longest_file(20_000), caplog.at_level(logging.WARNING):
        assert not Marks(tmp_path).store(VerifyMark(made_ms=2), kept)
    assert "the mark was not stored" in caplog.text
    assert suffixes(tmp_path) == ["", ".mark", ".rows"]
    assert Marks(tmp_path).load()[0].made_ms == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left"), sqlite3.OperationalError("full")])
async def test_a_green_run_is_reported_without_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world = World()
    await world.publish()

    def fail(_: Path) -> None:
        raise error

    monkeypatch.setattr(marks, "sync", fail)
    lines: list[str] = []
    log = installation(world.broker)
    report = await verify(log, None, lines.append, marks=Marks(tmp_path))
    assert report.ok and report.counts["commands"] == 3
    assert lines[-1].startswith("the mark was not stored")
    assert suffixes(tmp_path) == [""]


def test_files_of_a_run_that_was_killed_are_removed_before_a_mark_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that such files have filled would have no place for another mark."""
    assert Marks(tmp_path).store(VerifyMark(made_ms=1), filled())
    in_use = {file.name for file in tmp_path.iterdir()}
    for name in ("0.rows", "0.rows-journal", "0.half"):
        (tmp_path / name).touch()
    monkeypatch.setattr(RowStore, "copy_to", _fail)
    assert not Marks(tmp_path).store(VerifyMark(made_ms=2), RowStore())
    assert {file.name for file in tmp_path.iterdir()} == in_use


def _fail(_: RowStore, __: Path) -> None:
    raise sqlite3.OperationalError("disk I/O error")


def test_runs_at_the_same_time_each_store_a_whole_mark(tmp_path: Path) -> None:
    def store(made_ms: int) -> bool:
        return Marks(tmp_path).store(VerifyMark(made_ms=made_ms), filled())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(store, range(1, 13)))
    mark, rows = Marks(tmp_path).load()
    assert mark.made_ms and len([*rows.rows("t")]) == ROWS
    assert suffixes(tmp_path) == ["", ".mark", ".rows"]


def test_no_other_run_reads_or_writes_while_a_mark_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked: list[bool] = []

    def try_lock(_: RowStore, __: Path) -> None:
        with (tmp_path / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                blocked.append(True)
        raise sqlite3.OperationalError("no file is needed")

    monkeypatch.setattr(RowStore, "copy_to", try_lock)
    Marks(tmp_path).store(VerifyMark(made_ms=1), RowStore())
    assert blocked == [True]
