"""The agent's container gives its data to root, and lets other users pass."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from infra.image.node import PASSABLE, take_over

EARLIER = 10001
DEEP = 1500


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_the_data_of_an_earlier_release_become_roots(tmp_path: Path) -> None:
    data, link = tmp_path / "data", tmp_path / "data" / "agent" / "link"
    link.parent.mkdir(parents=True)
    link.symlink_to("/etc/hostname")
    (data / "agent" / "identity.json").write_text("{}")
    owner = Path("/etc/hostname").stat().st_uid
    for path in (data, *data.rglob("*")):
        os.lchown(path, EARLIER, EARLIER)
    take_over(data)
    assert {path.lstat().st_uid for path in (data, *data.rglob("*"))} == {0}
    assert stat.S_IMODE(data.stat().st_mode) == PASSABLE
    assert Path("/etc/hostname").stat().st_uid == owner


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_a_tree_deeper_than_a_path_becomes_roots_without_its_links(tmp_path: Path) -> None:
    """A job of an earlier release could leave one."""
    data, outside = tmp_path / "data", tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    data.mkdir()
    folder = os.open(data, os.O_RDONLY)
    for _ in range(DEEP):
        os.mkdir("aaaa", dir_fd=folder)
        below = os.open("aaaa", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
        os.fchown(folder, EARLIER, EARLIER)
    os.symlink(outside, "link", dir_fd=folder)
    for path in (data, outside, outside / "folder"):
        os.chown(path, EARLIER, EARLIER)
    take_over(data)
    assert os.fstat(folder).st_uid == os.stat("link", dir_fd=folder, follow_symlinks=False).st_uid
    assert os.fstat(folder).st_uid == data.stat().st_uid == 0
    assert outside.stat().st_uid == (outside / "folder").stat().st_uid == EARLIER
    os.close(folder)
    subprocess.run(["rm", "-rf", data], check=True)


def test_data_of_its_own_are_only_opened_to_pass(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    take_over(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == PASSABLE
