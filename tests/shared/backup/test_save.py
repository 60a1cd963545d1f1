"""A backup has every record that its ledgers refer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.backup.files import BadBackup, entries, open_backup
from shared.backup.save import save, saved_topics
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.log import Feed
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.contracts.topics import TOPICS
from shared.ledger.partition import TP
from tests.shared.backup.logs import JOB, CutLog, back_up, written_log


def test_topics_that_cannot_be_rebuilt_are_saved() -> None:
    topics = saved_topics(4, ["ada"])
    assert topics["submissions.ada"] == topics["placement"] == 4
    assert topics["access"] == topics["access.commands"] == 1
    assert not {"events", "dead", "heartbeats", "telemetry", "logs"} & set(topics)
    assert set(topics) - {"submissions.ada"} <= set(TOPICS)


class BusyLog(MemoryLog):
    """A log in which a command arrives and is decided while it is copied."""

    def __init__(self, broker: MemoryBroker, pen: LedgerWriter) -> None:
        super().__init__(broker)
        self.pen = pen

    async def end(self, tp: TP) -> int:
        end = await super().end(tp)
        if tp == TP("commands", 0):
            self.broker.append(tp, b"late")
            self.pen.inputs = {"commands-0": end + 1}
            self.pen.write([JOB])
        return end


async def test_a_backup_has_every_record_that_it_refers_to(tmp_path: Path) -> None:
    """The end of commands is read before that of a ledger that then names a later one."""
    broker = written_log()
    busy = BusyLog(broker, LedgerWriter(broker, "throttle"))
    topics = {"commands": 1, "throttle": 1}
    manifest = await save(busy, topics, 1, tmp_path / "b")
    assert {part.topic: part.next for part in manifest.parts} == {"commands": 4, "throttle": 1}
    assert [e.value for e in entries(tmp_path / "b", manifest.parts[0])][-1] == b"late"


async def test_a_record_that_is_not_accepted_refers_to_nothing(tmp_path: Path) -> None:
    broker = written_log()
    pen = LedgerWriter(broker, "admission")
    pen.inputs = {"commands-0": 3}
    pen.write([JOB])
    rival = LedgerWriter(broker, "admission")
    rival.inputs = {"commands-0": 1 << 40}
    rival.write([JOB])
    await back_up(broker, tmp_path / "b")
    assert open_backup(tmp_path / "b").records == 5


class ShortLog(MemoryLog):
    """A log without records in its polls, as of a broker that lost acknowledged records."""

    async def feed(self, start: object, *, lossy: bool = False) -> Feed:
        return await super().feed({})


async def test_a_log_that_ends_too_soon_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.backup.save.WAIT_S", 0.0)
    with pytest.raises(BadBackup, match="commands-0: ends at 0; a ledger refers to 3"):
        await back_up(written_log(), tmp_path / "b", ShortLog(written_log()))
    with pytest.raises(BadBackup, match="an interrupted backup has no manifest"):
        open_backup(tmp_path / "b")


async def test_a_log_without_its_beginning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match="commands-0: begins at 2; its first records are deleted"):
        await back_up(written_log(), tmp_path / "b", CutLog(written_log()))


async def test_a_full_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(BadBackup, match="not empty"):
        await back_up(written_log(), tmp_path)
