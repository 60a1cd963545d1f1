"""A backup is restored at the same offsets, or refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from shared.backup.files import MANIFEST, BadBackup
from shared.backup.load import load
from shared.backup.save import save
from shared.bus.logs.ledger_writer import LedgerWriter
from shared.bus.logs.memory import MemoryBroker, MemoryLog
from shared.ledger.partition import TP
from tests.shared.backup.logs import JOB, CutLog, MemoryRestorer, back_up, written_log


async def test_a_restored_log_is_the_same_log(tmp_path: Path) -> None:
    broker = written_log()
    pen = LedgerWriter(broker, "admission")
    pen.inputs = {"commands-0": 3}
    pen.write([JOB])
    await back_up(broker, tmp_path / "b")
    empty = MemoryBroker()
    manifest = await load(tmp_path / "b", MemoryLog(empty), MemoryRestorer(empty))
    assert manifest.records == 4
    for tp in (TP("commands", 0), TP("admission", 0)):
        assert empty.entries(tp) == broker.entries(tp)


async def test_submissions_may_have_lost_their_beginning(tmp_path: Path) -> None:
    broker = MemoryBroker()
    for n in range(5):
        broker.append(TP("submissions.ada", 0), b"s%d" % n)
    manifest = await save(CutLog(broker), {"submissions.ada": 1}, 1, tmp_path / "b")
    empty = MemoryBroker()
    await load(tmp_path / "b", MemoryLog(empty), MemoryRestorer(empty))
    assert (manifest.parts[0].first, manifest.parts[0].next) == (2, 5)
    values = [entry.value for entry in empty.entries(TP("submissions.ada", 0))]
    assert values == [b"s2", b"s3", b"s4"]


async def test_removed_requests_are_restored_as_empty_records(tmp_path: Path) -> None:
    broker, requests = MemoryBroker(), TP("llm.requests", 0)
    for n in range(5):
        broker.append(requests, b"r%d" % n)
    broker.trim(requests, 2)
    await save(MemoryLog(broker), {"llm.requests": 1}, 1, tmp_path / "b")
    empty = MemoryBroker()
    await load(tmp_path / "b", MemoryLog(empty), MemoryRestorer(empty))
    assert [entry.value for entry in empty.entries(requests)] == [b"", b"", b"r2", b"r3", b"r4"]


async def test_a_broker_with_records_is_refused(tmp_path: Path) -> None:
    await back_up(written_log(), tmp_path / "b")
    other = written_log(1)
    with pytest.raises(BadBackup, match="commands-0: not empty"):
        await load(tmp_path / "b", MemoryLog(other), MemoryRestorer(other))
    assert len(other.entries(TP("commands", 0))) == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: (b / "commands-0.gz").unlink(), "missing"),
        (lambda b: (b / "commands-0.gz").write_bytes(gzip.compress(b"")), "sha256"),
        (lambda b: (b / MANIFEST).unlink(), "interrupted"),
        (lambda b: (b / MANIFEST).write_text("{"), "JSON"),
        (lambda b: _edit(b, format=3), "unknown format 3"),
    ],
)
async def test_a_damaged_backup_is_refused(tmp_path: Path, damage: object, message: str) -> None:
    await back_up(written_log(), tmp_path / "b")
    assert callable(damage)
    damage(tmp_path / "b")
    empty = MemoryBroker()
    with pytest.raises(BadBackup, match=message):
        await load(tmp_path / "b", MemoryLog(empty), MemoryRestorer(empty))
    assert not empty.entries(TP("commands", 0))


def _edit(folder: Path, **values: object) -> None:
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
