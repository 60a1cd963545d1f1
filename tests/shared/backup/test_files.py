"""The files of a backup are complete and unchanged, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.backup.files import (
    BackupManifest,
    BackupPart,
    BadBackup,
    PartWriter,
    entries,
    finish,
    open_backup,
)
from shared.bus.logs.log import Entry
from shared.ledger.partition import TP

COMMANDS = TP("commands", 0)
ENTRIES = [
    Entry(2, b"key", b"first", (("traceparent", b"00-aa"),), 1_000),
    Entry(3, None, b"second", (), 2_000),
]


def write_part(folder: Path, tp: TP = COMMANDS, stored: list[Entry] = ENTRIES) -> BackupPart:
    with PartWriter(folder, tp, stored[0].offset) as writer:
        for entry in stored:
            writer.add(entry)
    return writer.part()


def write_backup(folder: Path, *parts: BackupPart) -> BackupManifest:
    manifest = BackupManifest(partitions=1, parts=parts)
    finish(folder, manifest)
    return manifest


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    part = write_part(tmp_path)
    assert (part.tp, part.first, part.next) == (COMMANDS, 2, 4)
    assert list(entries(tmp_path, part)) == ENTRIES


def test_the_same_entries_give_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert write_part(tmp_path / "a") == write_part(tmp_path / "b")


def test_a_gap_in_the_offsets_is_refused(tmp_path: Path) -> None:
    late = Entry(5, None, b"late", (), 0)
    with pytest.raises(BadBackup, match="commands-0: offset 4 is missing; next is 5"):
        write_part(tmp_path, stored=[*ENTRIES, late])


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    write_part(tmp_path)
    with pytest.raises(FileExistsError):
        write_part(tmp_path)


def test_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    part = write_part(tmp_path)
    assert (tmp_path / part.file).stat().st_mode & 0o777 == 0o600


def test_a_complete_backup_is_opened(tmp_path: Path) -> None:
    submission = write_part(tmp_path, TP("submissions.red", 0))
    manifest = write_backup(tmp_path, write_part(tmp_path), submission)
    assert open_backup(tmp_path) == manifest
    assert (manifest.records, manifest.tenants) == (4, ["red"])


def test_a_file_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    part = write_part(tmp_path).model_copy(update={"file": "../commands-0.gz"})
    write_backup(tmp_path, part)
    with pytest.raises(BadBackup, match="invalid path"):
        open_backup(tmp_path)
