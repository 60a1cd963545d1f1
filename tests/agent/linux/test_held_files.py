"""Files without a name take space while a process has them."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from berth_agent.linux import held_files

pytestmark = pytest.mark.process
MIB = 2**20
PAGE = mmap.PAGESIZE


def measured(folder: Path) -> int:
    return held_files.held_bytes([os.getpid()], {folder.stat().st_dev})


def test_an_open_file_counts_once_when_it_has_lost_its_name(tmp_path: Path) -> None:
    before = measured(tmp_path)
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.write(bytes(MIB))
        file.flush()
        again = os.dup(file.fileno())
        assert measured(tmp_path) == before
        path.unlink()
        assert measured(tmp_path) - before >= MIB
        assert measured(tmp_path) - before < 2 * MIB
        assert held_files.held_bytes([os.getpid()], set()) == 0
        os.close(again)
    assert measured(tmp_path) == before


def test_a_file_that_only_a_mapping_keeps_counts(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root reads the files of mappings")
    before = measured(tmp_path)
    path = tmp_path / "mapped"
    with path.open("w+b") as file:
        file.write(bytes(MIB))
        file.flush()
        mapping = mmap.mmap(file.fileno(), PAGE)
    path.unlink()
    # CPython's mapping has a descriptor of its own.
    for name in os.listdir("/proc/self/fd"):
        if os.path.realpath(f"/proc/self/fd/{name}").startswith(str(path)):
            os.close(int(name))
    assert measured(tmp_path) - before >= MIB
    del mapping


def test_a_file_with_a_name_like_that_of_a_deleted_one_is_not_held(tmp_path: Path) -> None:
    before = measured(tmp_path)
    with (tmp_path / "x (deleted)").open("wb") as file:
        file.write(bytes(MIB))
        file.flush()
        assert measured(tmp_path) == before


def test_a_process_that_has_gone_holds_nothing() -> None:
    assert held_files.held_bytes([2**22], {0}) == 0
    assert held_files.root_device(2**22) is None
