"""A copy of a busy log is whole in itself, and goes back to where it was."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from shared.backup.files import MANIFEST, BadBackup, entries, open_backup
from shared.backup.load import load
from shared.backup.save import kept_topics, save
from shared.bus.log import Entry, Feed
from shared.bus.memory import MemoryBroker, MemoryLog
from shared.contracts.placement import JobCancelled
from shared.contracts.topics import TOPICS
from shared.ledger.partition import TP
from shared.testing.ledgers import LedgerWriter

TOPICS_OF_TWO = kept_topics(1, ["ada"])
JOB = JobCancelled(job_id="a.0", tenant="red")


def a_log(commands: int = 3) -> MemoryBroker:
    broker = MemoryBroker()
    for n in range(commands):
        broker.append(TP("commands", 0), b"c%d" % n, b"key", (("traceparent", b"00-aa"),))
    return broker


async def a_backup(broker: MemoryBroker, folder: Path, log: MemoryLog | None = None) -> None:
    await save(log or MemoryLog(broker), TOPICS_OF_TWO, 1, folder)


class Twin:
    """Writes to the twin of the broker."""

    def __init__(self, broker: MemoryBroker) -> None:
        self.broker = broker

    async def post(self, tp: TP, entry: Entry) -> asyncio.Future[int]:
        assert entry.value is not None
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(self.broker.append(tp, entry.value, entry.key, entry.headers))
        return done


def test_kept_is_all_that_cannot_be_made_anew() -> None:
    topics = kept_topics(4, ["ada"])
    assert topics["submissions.ada"] == topics["placement"] == 4
    assert topics["access"] == topics["access.commands"] == 1
    assert not {"events", "dead", "heartbeats", "telemetry", "logs"} & set(topics)
    assert set(topics) - {"submissions.ada"} <= set(TOPICS)


async def test_a_restored_log_is_the_same_log(tmp_path: Path) -> None:
    broker = a_log()
    pen = LedgerWriter(broker, "admission")
    pen.inputs = {"commands-0": 3}
    pen.write([JOB])
    await a_backup(broker, tmp_path / "b")
    empty = MemoryBroker()
    manifest = await load(tmp_path / "b", MemoryLog(empty), Twin(empty))
    assert manifest.records == 4
    for tp in (TP("commands", 0), TP("admission", 0)):
        assert empty.entries(tp) == broker.entries(tp)


class BusyLog(MemoryLog):
    """While it is copied, a command comes in and is decided."""

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


async def test_a_copy_refers_to_nothing_that_it_lacks(tmp_path: Path) -> None:
    """The end of commands is read before that of a ledger that then names a later one."""
    broker = a_log()
    busy = BusyLog(broker, LedgerWriter(broker, "throttle"))
    topics = {"commands": 1, "throttle": 1}
    manifest = await save(busy, topics, 1, tmp_path / "b")
    assert {part.topic: part.next for part in manifest.parts} == {"commands": 4, "throttle": 1}
    assert [e.value for e in entries(tmp_path / "b", manifest.parts[0])][-1] == b"late"


async def test_a_record_that_does_not_count_asks_for_nothing(tmp_path: Path) -> None:
    broker = a_log()
    pen = LedgerWriter(broker, "admission")
    pen.inputs = {"commands-0": 3}
    pen.write([JOB])
    rival = LedgerWriter(broker, "admission")
    rival.inputs = {"commands-0": 1 << 40}
    rival.write([JOB])
    await a_backup(broker, tmp_path / "b")
    assert open_backup(tmp_path / "b").records == 5


class ShortLog(MemoryLog):
    """Its polls find nothing, as on a broker that lost acknowledged records."""

    async def feed(self, start: object, *, lossy: bool = False) -> Feed:
        return await super().feed({})


async def test_a_log_that_ends_too_soon_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.backup.save.WAIT_S", 0.0)
    with pytest.raises(BadBackup, match="commands-0 ends at 0, but 3 is"):
        await a_backup(a_log(), tmp_path / "b", ShortLog(a_log()))
    with pytest.raises(BadBackup, match="an interrupted backup has none"):
        open_backup(tmp_path / "b")


class CutLog(MemoryLog):
    async def begin(self, tp: TP) -> int:
        return 2 if tp.topic in ("commands", "submissions.ada") else 0


async def test_a_log_without_its_beginning_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadBackup, match="commands-0: begins at 2"):
        await a_backup(a_log(), tmp_path / "b", CutLog(a_log()))


async def test_submissions_may_have_lost_their_beginning(tmp_path: Path) -> None:
    broker = MemoryBroker()
    for n in range(5):
        broker.append(TP("submissions.ada", 0), b"s%d" % n)
    manifest = await save(CutLog(broker), {"submissions.ada": 1}, 1, tmp_path / "b")
    empty = MemoryBroker()
    await load(tmp_path / "b", MemoryLog(empty), Twin(empty))
    assert (manifest.parts[0].first, manifest.parts[0].next) == (2, 5)
    found = [entry.value for entry in empty.entries(TP("submissions.ada", 0))]
    assert found == [b"s2", b"s3", b"s4"]


async def test_a_full_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(BadBackup, match="not empty"):
        await a_backup(a_log(), tmp_path)


async def test_a_broker_with_records_is_refused(tmp_path: Path) -> None:
    await a_backup(a_log(), tmp_path / "b")
    other = a_log(1)
    with pytest.raises(BadBackup, match="commands-0: not empty"):
        await load(tmp_path / "b", MemoryLog(other), Twin(other))
    assert len(other.entries(TP("commands", 0))) == 1


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda b: (b / "commands-0.gz").unlink(), "missing"),
        (lambda b: (b / "commands-0.gz").write_bytes(gzip.compress(b"")), "sha256"),
        (lambda b: (b / MANIFEST).unlink(), "interrupted"),
        (lambda b: (b / MANIFEST).write_text("{"), "JSON"),
        (lambda b: _edit(b, format=2), "format 2"),
    ],
)
async def test_a_damaged_backup_is_refused(tmp_path: Path, damage: object, said: str) -> None:
    await a_backup(a_log(), tmp_path / "b")
    assert callable(damage)
    damage(tmp_path / "b")
    empty = MemoryBroker()
    with pytest.raises(BadBackup, match=said):
        await load(tmp_path / "b", MemoryLog(empty), Twin(empty))
    assert not empty.entries(TP("commands", 0))


def _edit(folder: Path, **values: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
