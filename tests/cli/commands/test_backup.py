"""Refusals of `berth backup` and `berth restore`; tests/operations executes what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.commands import backup
from cli.errors import BadInput, Refused
from cli.main import app
from infra.supervisor.running import RunningStack
from infra.supervisor.running import save as save_stack
from shared.backup.save import save
from shared.bus.archive.archive import Archive
from tests.infra.supervisor.test_archive_folder import known
from tests.shared.bus.archive.archives import LEDGER, Installation


def refused(*words: str | Path) -> BaseException | None:
    return CliRunner().invoke(app, [str(word) for word in words]).exception


@pytest.fixture
async def tail(tmp_path: Path) -> Path:
    """A backup of a tail; the archive is beside it."""
    site = Installation(tmp_path / "archive")
    site.write(3)
    await site.archive()
    site.write(1)
    chains = {LEDGER: Archive(site.store).refresh(LEDGER)}
    await save(site.tiered, {LEDGER.topic: 1}, 1, tmp_path / "tail", chains)
    return tmp_path / "tail"


def test_a_tail_needs_an_archive(tmp_path: Path) -> None:
    known(tmp_path, "")
    error = refused("backup", tmp_path / "b", "--tail", "--data", tmp_path)
    assert isinstance(error, Refused)
    assert "--archive FOLDER" in str(error)


def test_a_tail_is_not_restored_alone(tail: Path, tmp_path: Path) -> None:
    error = refused("restore", tail, "--data", tmp_path / "data")
    assert isinstance(error, BadInput)
    assert "`--archive` names the archive" in str(error)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("folder", "reason"), [("nowhere", "no archive"), ("other", "has 0 entries")]
)
def test_an_archive_without_what_is_before_the_tail_is_refused(
    tail: Path, tmp_path: Path, folder: str, reason: str
) -> None:
    Installation(tmp_path / "other")
    error = refused("restore", tail, "--data", tmp_path / "data", "--archive", tmp_path / folder)
    assert isinstance(error, BadInput)
    assert reason in str(error)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("where", [(), ("--data", "new", "--into", "old")])
def test_a_restore_goes_either_into_a_new_folder_or_into_a_broker(
    tail: Path, where: tuple[str, ...]
) -> None:
    error = refused("restore", tail, *where)
    assert isinstance(error, BadInput) and "either --data or --into" in str(error)


@pytest.mark.parametrize(
    ("stack", "reason"), [({"broker": "embedded"}, "in memory"), ({"partitions": 4}, "has 1, and")]
)
def test_a_broker_that_cannot_hold_the_backup_is_refused(
    tail: Path, tmp_path: Path, stack: dict[str, object], reason: str
) -> None:
    save_stack(elsewhere(tmp_path / "stack").model_copy(update=stack))
    error = refused("restore", tail, "--into", tmp_path / "stack")
    assert isinstance(error, BadInput) and reason in str(error)


def test_a_backup_is_restored_into_a_broker_that_runs(
    tail: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_stack(elsewhere(tmp_path / "stack"))
    loaded: list[RunningStack] = []
    monkeypatch.setattr(backup, "_load", lambda stack, *_: loaded.append(stack))
    words = ("restore", tail, "--into", tmp_path / "stack", "--archive", tmp_path / "archive")
    assert refused(*words) is None
    assert [stack.kafka for stack in loaded] == ["kafka.site:9093"]


def elsewhere(folder: Path) -> RunningStack:
    """Return a stack whose Kafka runs elsewhere."""
    folder.mkdir()
    return RunningStack(
        data_dir=folder,
        broker="external",
        partitions=1,
        kafka="kafka.site:9093",
        postgres="",
        gateway="",
        llm="",
        otlp="",
        state=folder,
        work=folder,
        ports={},
    )
