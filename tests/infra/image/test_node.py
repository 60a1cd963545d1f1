"""The agent's container gives its data to root, and lets other users pass."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from infra.image.node import PASSABLE, take_over

EARLIER = 10001


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


def test_data_of_its_own_are_only_opened_to_pass(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    take_over(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == PASSABLE
