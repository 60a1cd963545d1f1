"""Trees that a job has made to be neither measured nor removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth_agent.linux import disk

pytestmark = pytest.mark.process

MIB = 2**20
DEEP = 1500
"""Levels: below a path of this length Python recurses too deep, and a call names no file."""


def test_folders_are_measured_and_one_that_is_gone_is_left_out(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    for folder in (large, small):
        folder.mkdir()
    (large / "file").write_bytes(b"x" * MIB)
    os.link(large / "file", large / "again")
    sizes = disk.sizes_bytes([str(large), str(small), str(tmp_path / "none")])
    assert sizes.keys() == {str(large), str(small)}
    assert MIB <= sizes[str(large)] < 1.5 * MIB and sizes[str(small)] < MIB
    assert disk.sizes_bytes([]) == {}


def test_a_tree_deeper_than_a_path_is_measured_and_removed(tmp_path: Path) -> None:
    root = tmp_path / "deep"
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("aaaa", dir_fd=folder)
        below = os.open("aaaa", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    with open("file", "wb", opener=lambda name, flags: os.open(name, flags, dir_fd=folder)) as file:
        file.write(b"x" * MIB)
    os.close(folder)
    assert disk.sizes_bytes([str(root)])[str(root)] >= MIB
    disk.remove(str(root))
    assert not root.exists()


def test_a_link_is_removed_and_not_what_it_names(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    kept.write_text("x")
    folder.mkdir()
    (folder / "link").symlink_to(kept)
    disk.remove(str(folder))
    assert kept.exists() and not folder.exists()


def test_free_space_is_that_of_the_disk(tmp_path: Path) -> None:
    assert 0 <= disk.free_gib(str(tmp_path)) < 2**20
