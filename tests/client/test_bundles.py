"""Folders are packed into bundles: equal files make equal parts, and nothing leaves the folder."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from berth_client import bundles
from berth_client.bundles import BadFolder, Bundle, packed
from shared.contracts.bundles import MAX_PARTS, PART_BYTES, Manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("pkg/deep", ".git", ".berth/demo", "pkg/__pycache__", "data"):
        (folder / name).mkdir(parents=True)
    hidden = (".git/config", ".berth/demo/operator.key", "pkg/__pycache__/x.pyc")
    for name in ("train.py", "pkg/deep/model.py", *hidden):
        (folder / name).write_text(name)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    (folder / "latest").symlink_to("pkg/deep/model.py")
    return folder


def content(bundle: Bundle) -> dict[str, tarfile.TarInfo]:
    bundle.archive.seek(0)
    with tarfile.open(fileobj=bundle.archive, mode="r:gz") as archive:
        return {member.name: member for member in archive}


def test_bounds_are_those_of_the_contract() -> None:
    assert (bundles.PART_BYTES, bundles.MAX_PARTS) == (PART_BYTES, MAX_PARTS)


def test_files_links_and_rights_are_packed_and_what_is_ignored_is_not(folder: Path) -> None:
    (folder / ".berthignore").write_text("# weights\ndata/\n*.ckpt\npkg/deep/notes*\n\n")
    for name in ("data/a", "last.ckpt", "pkg/deep/notes.md", "notes.md"):
        (folder / name).write_text("x")
    with packed(folder) as bundle:
        members = content(bundle)
    files = {".berthignore", "train.py", "run.sh", "notes.md", "latest", "pkg/deep/model.py"}
    assert members.keys() == files | {"pkg", "pkg/deep"}
    assert bundle.files == len(files)
    assert (members["run.sh"].mode, members["train.py"].mode) == (0o755, 0o644)
    assert members["latest"].linkname == "pkg/deep/model.py"
    assert {(member.uid, member.uname, member.mtime) for member in members.values()} == {(0, "", 0)}


def test_equal_files_make_equal_bundles_and_the_manifest_is_that_of_the_contract(
    folder: Path,
) -> None:
    manifests = []
    for moment in (1, 2_000_000_000):
        for path in folder.rglob("*"):
            os.utime(path, (moment, moment), follow_symlinks=False)
        with packed(folder) as bundle:
            manifests.append(bundle.manifest)
            joined = b"".join(bundle.part(name) for name in bundle.parts)
            assert len(joined) == bundle.size_bytes
    assert manifests[0] == manifests[1]
    assert Manifest.model_validate(manifests[0]).fault() == ""


def test_a_large_folder_has_several_parts(folder: Path) -> None:
    (folder / "random").write_bytes(os.urandom(2 * PART_BYTES))
    with packed(folder) as bundle:
        sizes = [len(bundle.part(name)) for name in bundle.parts]
    assert sizes[:2] == [PART_BYTES] * 2 and sizes[2] < PART_BYTES
    assert sum(sizes) == bundle.size_bytes


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret", "pkg/../../secret"])
def test_a_link_out_of_the_folder_is_refused(folder: Path, target: str) -> None:
    (folder / "leak").symlink_to(target)
    with (
        pytest.raises(BadFolder, match=r"leak: a link to .* leads out of the folder"),
        packed(folder),
    ):
        pass


def test_what_is_no_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(BadFolder, match="pipe: not a regular file"), packed(folder):
        pass


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFolder, match="nowhere: not a folder"), packed(tmp_path / "nowhere"):
        pass
