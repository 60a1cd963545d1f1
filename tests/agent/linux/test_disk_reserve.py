"""Space for a full disk, on a small disk of its own."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from berth_agent.linux.disk_reserve import SLICE_BYTES, DiskReserve, write_on_full_disk
from tests.agent.small_disk import a_small_disk, fill

pytestmark = pytest.mark.process
SIZE_BYTES = 4 * SLICE_BYTES


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk of ten slices."""
    with (
        tempfile.TemporaryDirectory(prefix="berth-disk-") as name,
        a_small_disk(Path(name), str(10 * SLICE_BYTES)),
    ):
        yield Path(name)


def write(path: Path) -> None:
    path.write_bytes(b"x" * 4096)


def reserve_on(disk: Path) -> DiskReserve:
    reserve = DiskReserve(str(disk / "reserve"), SIZE_BYTES)
    reserve.refill()
    return reserve


def test_each_slice_lets_something_be_written_on_a_full_disk(disk: Path) -> None:
    reserve = reserve_on(disk)
    for number in range(4):
        fill(disk / "filler")
        assert reserve.is_lacking() is (number > 0)
        note = disk / f"note-{number}"
        write_on_full_disk(reserve.path, partial(write, note))
        assert note.stat().st_size == 4096
    fill(disk / "filler")
    with pytest.raises(OSError, match="No space"):
        write_on_full_disk(reserve.path, partial(write, disk / "last"))


def test_the_space_is_taken_again_once_the_disk_has_twice_as_much(disk: Path) -> None:
    reserve = reserve_on(disk)
    fill(disk / "filler")
    write_on_full_disk(reserve.path, partial(write, disk / "note"))
    reserve.refill()
    assert reserve.is_lacking()
    (disk / "filler").unlink()
    reserve.refill()
    assert not reserve.is_lacking()
    assert os.stat(reserve.path).st_blocks * 512 == SIZE_BYTES


def test_a_disk_that_is_too_small_lacks_its_reserve(disk: Path) -> None:
    reserve = DiskReserve(str(disk / "reserve"), 6 * SLICE_BYTES)
    reserve.refill()
    assert reserve.is_lacking() and not (disk / "reserve").exists()
    fill(disk / "filler")
    with pytest.raises(OSError, match="No space"):
        write_on_full_disk(reserve.path, partial(write, disk / "note"))


def test_a_reserve_of_no_size_is_never_lacking(disk: Path) -> None:
    reserve = DiskReserve(str(disk / "reserve"), 0)
    fill(disk / "filler")
    assert not reserve.is_lacking()
    reserve.refill()
    assert not reserve.is_lacking()


def test_another_error_uses_nothing(tmp_path: Path) -> None:
    reserve = reserve_on(tmp_path)
    with pytest.raises(OSError, match="directory") as raised:
        write_on_full_disk(reserve.path, partial(write, tmp_path / "missing" / "note"))
    assert raised.value.errno == errno.ENOENT and not reserve.is_lacking()


def test_the_problem_says_since_when_and_what_is_refused_and_stays_the_same(disk: Path) -> None:
    fill(disk / "filler")
    reserve = reserve_on(disk)
    problem = reserve.problem()
    assert re.search(
        r" has less than 1.5 MiB since \d{4}-\d\d-\d\d \d\d:\d\d UTC, .*: new work is refused until"
        r" 2 MiB are free$",
        problem,
    )
    assert reserve.problem() == problem
    (disk / "filler").unlink()
    reserve.refill()
    assert reserve.problem() == ""


def test_a_disk_is_full_before_the_reserve_is_needed_and_until_there_is_twice_its_size(
    disk: Path,
) -> None:
    reserve, filler = reserve_on(disk), disk / "filler"
    assert reserve.problem() == "", "10 slices, of which the reserve holds 4"
    for slices, is_full in ((4, False), (5, True), (3, True), (2, False), (4, False)):
        filler.write_bytes(b"x" * slices * SLICE_BYTES)
        assert bool(reserve.problem()) is is_full, slices
        assert not reserve.is_lacking()
