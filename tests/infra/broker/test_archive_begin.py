"""A place becomes the archive of an installation once, while its topics have their beginnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.broker.archive_begin import begin_archive, make_archive
from shared.bus.archive.folder_store import FolderStore
from shared.bus.archive.store import MARK
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.errors import ArchiveUnreachable
from shared.ledger.partition import TP
from shared.process.connection import Connection

TPS = [TP("admission", 0), TP("placement", 0)]


async def test_an_empty_place_becomes_an_archive_once(tmp_path: Path) -> None:
    log, folder = MemoryLog(MemoryBroker()), tmp_path / "archive"
    for _ in range(2):
        await make_archive(FolderStore(folder), log, TPS)
        assert [path.name for path in folder.iterdir()] == [MARK]


async def test_of_a_trimmed_topic_an_empty_place_is_no_archive(tmp_path: Path) -> None:
    broker, folder = MemoryBroker(), tmp_path / "archive"
    broker.append(TPS[1], b"record")
    broker.trim(TPS[1], 1)
    with pytest.raises(ArchiveUnreachable, match="no archive"):
        await make_archive(FolderStore(folder), MemoryLog(broker), TPS)
    assert not folder.exists()
    FolderStore(folder).create()
    await make_archive(FolderStore(folder), MemoryLog(broker), TPS)


def test_a_folder_is_made_where_it_is_mounted(tmp_path: Path) -> None:
    begin_archive(Connection("127.0.0.1:1"), str(tmp_path / "archive"), 1)
    assert not any(tmp_path.iterdir())
