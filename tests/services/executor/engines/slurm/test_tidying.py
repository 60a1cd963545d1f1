"""Folders of ended gangs go after their time, and those of living gangs and of others never."""

from __future__ import annotations

import os
from pathlib import Path

from services.executor.core.engines.noted import folder_name
from services.executor.engines.slurm.tidying import Tidying

KEEP_S = 100.0
LIVES, ENDED = "berth:here:gpu:1/5/0", "berth:here:gpu:1/4/0"
OTHERS = ("berth:here:gpu2:1/4/0", "berth:there:gpu:1/4/0", "notes")


def folders(root: Path, *names: str) -> None:
    for name in names:
        folder = root / folder_name(name)
        (folder / "work-0").mkdir(parents=True)
        os.utime(folder, (0, 0))


def left(root: Path) -> set[str]:
    return {path.name for path in root.iterdir()}


def test_what_was_over_at_two_rounds_and_is_old_goes(tmp_path: Path) -> None:
    files, notes = tmp_path / "files", tmp_path / "notes"
    for root in (files, notes):
        folders(root, LIVES, ENDED, *OTHERS)
    tidying = Tidying((files, notes, tmp_path / "absent"), KEEP_S)
    tidying.note_living([LIVES])
    tidying.tidy(KEEP_S - 1)
    tidying.tidy(KEEP_S)
    assert folder_name(ENDED) in left(files), "its output may still be read"
    tidying.tidy(KEEP_S)
    kept = {folder_name(name) for name in (LIVES, *OTHERS)}
    assert left(files) == left(notes) == kept


def test_without_a_gang_of_the_pool_nothing_is_its_own(tmp_path: Path) -> None:
    folders(tmp_path, ENDED)
    tidying = Tidying((tmp_path,), KEEP_S)
    for _ in range(2):
        tidying.note_living([])
        tidying.tidy(KEEP_S)
    assert left(tmp_path) == {folder_name(ENDED)}


def test_a_link_of_a_tenant_leads_to_no_removal(tmp_path: Path) -> None:
    root, precious = tmp_path / "root", tmp_path / "precious"
    folders(root, ENDED)
    (precious / "file").mkdir(parents=True)
    (root / folder_name(ENDED) / "link").symlink_to(precious)
    (root / folder_name("berth:here:gpu:1/3/0")).symlink_to(precious)
    os.utime(root / folder_name(ENDED), (0, 0))
    os.utime(root / folder_name("berth:here:gpu:1/3/0"), (0, 0), follow_symlinks=False)
    tidying = Tidying((root,), KEEP_S)
    tidying.note_living([LIVES])
    for _ in range(2):
        tidying.tidy(KEEP_S)
    assert (precious / "file").exists()
    assert left(root) == {folder_name("berth:here:gpu:1/3/0")}
