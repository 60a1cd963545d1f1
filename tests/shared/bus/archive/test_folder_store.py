from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.store import MARK
from shared.ledger.errors import ArchiveUnreachable


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    store = FolderStore(tmp_path / "archive")
    store.create()
    return store


def test_an_object_is_made_once(store: FolderStore) -> None:
    assert store.put_new("a/b/0", b"first")
    assert not store.put_new("a/b/0", b"second")
    assert store.get("a/b/0") == b"first"
    assert store.get("a/b/1") is None


def test_of_several_writers_one_wins(store: FolderStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        for name in map(str, range(20)):
            won = list(
                pool.map(lambda n, name=name: store.put_new(f"c/{name}", b"%d" % n), range(8))
            )
            assert won.count(True) == 1
            assert store.get(f"c/{name}") == b"%d" % won.index(True)


def test_names_leave_out_what_a_killed_writer_left(store: FolderStore, tmp_path: Path) -> None:
    store.put_new("c/1", b"")
    store.put_new("c/0", b"")
    (tmp_path / "archive" / "c" / "2.0123456789ab.half").write_bytes(b"h")
    assert store.names("c") == ["0", "1"]
    assert store.names("d") == []


def test_a_folder_that_is_not_mounted_is_no_empty_archive(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "archive")
    for call in (lambda: store.get("c/0"), lambda: store.names("c"), store.check):
        with pytest.raises(ArchiveUnreachable, match=MARK):
            call()
    with pytest.raises(ArchiveUnreachable, match=MARK):
        store.put_new("c/0", b"")
    assert not (tmp_path / "archive" / "c").exists()


def test_a_folder_with_other_files_is_not_made_an_archive(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ArchiveUnreachable, match="not empty"):
        FolderStore(tmp_path).create()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a folder to another user")
def test_what_root_makes_is_the_owners_of_the_archive(store: FolderStore, tmp_path: Path) -> None:
    """As `berth ledgers archive` by root, beside services that run as another user."""
    os.chown(tmp_path / "archive", 10001, 10002)
    store.put_new("c/0", b"x")
    made = (tmp_path / "archive" / "c", tmp_path / "archive" / "c" / "0")
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(10001, 10002)}


def test_creating_it_again_changes_nothing(store: FolderStore) -> None:
    store.put_new("c/0", b"x")
    store.create()
    assert store.get("c/0") == b"x"


def test_an_error_of_the_disk_names_the_path(store: FolderStore, tmp_path: Path) -> None:
    (tmp_path / "archive" / "c").write_text("a file")
    with pytest.raises(ArchiveUnreachable, match="archive/c"):
        store.put_new("c/0", b"")
