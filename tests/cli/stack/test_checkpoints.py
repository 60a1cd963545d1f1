"""Ledgers are folded with the code at hand while the services of other code go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.errors import BadInput
from cli.stack import checkpoints
from cli.stack.checkpoints import DECIDERS, checkpoint_lane, checkpoint_service, folders_of
from infra.compose.__main__ import checkpoint_commands
from services.placement.core.decide import Placement
from shared.bus.folds.snapshots import Snapshots
from shared.bus.hosting.host import snapshots_of
from shared.bus.logs.memory import MemoryLog
from shared.ledger.reader import Cursor
from shared.process.settings import Settings
from tests.shared.projections.history import history

LEDGER = "placement"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Data folders of two copies of placement, and what is none of them."""
    for name in ("placement", "placement-2", "placement-lost", "priority"):
        (tmp_path / name).mkdir()
    return tmp_path


async def test_each_copy_gets_the_checkpoint_and_the_old_code_keeps_its_own(state: Path) -> None:
    folders = folders_of(state, LEDGER)
    assert [folder.name for folder in folders] == ["placement", "placement-2"]
    other = Snapshots[str](folders[0] / "snapshots", LEDGER, 0, "other-code")
    other.store(1, other.pack(Cursor(seq=1), "old"))
    decider, log = Placement(), MemoryLog(history(20))
    await log.start()
    done = await checkpoint_lane(decider, 0, log, folders)
    assert (done.folders, done.records) == (2, done.seq) and done.seq > 0
    for folder in folders:
        snapshot = snapshots_of(decider, folder, 0).load()
        assert snapshot is not None and snapshot.cursor.seq == done.seq
        assert snapshot.state.partition == 0
    # The old services store on beside it.
    other.store(2, other.pack(Cursor(seq=2), "older"))
    again = await checkpoint_lane(decider, 0, log, folders)
    assert (again.records, again.seq) == (0, done.seq)
    assert (kept := other.load()) is not None and kept.state == "older"


def test_a_service_without_a_ledger_is_named(tmp_path: Path) -> None:
    settings = Settings(kafka="127.0.0.1:1", data=tmp_path / "data")
    with pytest.raises(BadInput, match="--service gateway: has no ledger; these have: access, ad"):
        checkpoint_service("gateway", settings, lambda line: None)
    assert not settings.data.exists()


def test_containers_fold_the_ledger_of_each_decider_beside_it() -> None:
    commands = checkpoint_commands(["docker", "compose"])
    assert [command[-1] for command in commands] == [make().ledger for make in DECIDERS]
    assert all(command[-7] == command[-1] for command in commands), "container and ledger"


async def test_a_service_in_a_container_folds_into_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "KafkaLog", lambda *_, **__: MemoryLog(history(20)))
    settings = Settings(kafka="127.0.0.1:1", data=tmp_path / "data", partitions=2)
    folded = await asyncio.to_thread(checkpoint_service, LEDGER, settings, lambda line: None)
    assert [(row.partition, row.folders) for row in folded] == [(0, 1), (1, 1)]
    snapshot = snapshots_of(Placement(), settings.data, 0).load()
    assert snapshot is not None and snapshot.cursor.seq == folded[0].seq > 0
