"""Folders in the temporary directory whose owner has ended, and those that stay."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from infra.machine.owned_folders import _record_of, own, remove, remove_stale, scratch_folder

pytestmark = pytest.mark.process
HOLDS = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use a temporary directory of the test, so that it removes nothing of others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def folder_of(process: subprocess.Popen[str], temporary: Path, lock: str = "") -> Path:
    folder = temporary / "berth-0-f00"
    (folder / "deep").mkdir(parents=True)
    own(folder, process.pid, lock)
    return folder


def test_a_folder_goes_with_its_owner(owner: subprocess.Popen[str], temporary: Path) -> None:
    folder = folder_of(owner, temporary)
    assert remove_stale() == [] and folder.exists()
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    assert remove_stale() == [folder]
    assert not folder.exists() and not _record_of(folder).exists()


def test_a_killed_owner_of_a_scratch_folder_leaves_nothing_for_long(temporary: Path) -> None:
    script = (
        "import os, signal, tempfile\n"
        f"tempfile.tempdir = {str(temporary)!r}\n"
        "from infra.machine.owned_folders import scratch_folder\n"
        "with scratch_folder('e2e'):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    [left] = temporary.glob("berth-e2e-*")
    assert remove_stale() == [left]


def test_another_process_of_the_same_number_is_not_the_owner(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    folder = folder_of(owner, temporary)
    change(folder, began_ticks=1)
    assert remove_stale() == [folder]


@pytest.mark.parametrize("change_", [{"namespace": "pid:[1]"}, {"folder": "/etc"}])
def test_what_cannot_be_judged_stays(
    owner: subprocess.Popen[str], temporary: Path, change_: dict[str, object]
) -> None:
    folder = folder_of(owner, temporary)
    change(folder, began_ticks=1, **change_)
    assert remove_stale() == [] and folder.exists()
    _record_of(folder).write_text("{half a record")
    assert remove_stale() == [] and folder.exists()


def test_another_folder_or_a_link_of_its_name_stays(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    folder = folder_of(owner, temporary)
    change(folder, began_ticks=1)
    folder.rename(temporary / "moved")
    folder.symlink_to(temporary / "moved")
    assert remove_stale() == []
    assert (temporary / "moved" / "deep").exists() and folder.is_symlink()


def test_a_folder_stays_while_a_process_uses_it(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    folder = folder_of(owner, temporary)
    change(folder, began_ticks=1)
    command = [sys.executable, "-c", HOLDS]
    with subprocess.Popen(command, cwd=folder / "deep", stdin=subprocess.PIPE) as user:
        assert remove_stale() == [] and folder.exists()
        user.kill()
    assert remove_stale() == [folder]


def test_a_folder_stays_while_a_start_makes_use_of_it(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    lock = temporary / "lock"
    folder = folder_of(owner, temporary, str(lock))
    change(folder, began_ticks=1)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert remove_stale() == [] and folder.exists()
    assert remove_stale() == [folder]


def test_a_folder_of_a_stack_without_data_goes(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    folder = folder_of(owner, temporary, str(temporary / "gone" / "lock"))
    change(folder, began_ticks=1)
    assert remove_stale() == [folder]


def test_records_of_another_user_are_not_believed(
    owner: subprocess.Popen[str], temporary: Path
) -> None:
    folder = folder_of(owner, temporary)
    records = _record_of(folder).parent
    change(folder, began_ticks=1)
    records.rename(temporary / "theirs")
    records.symlink_to(temporary / "theirs")
    assert remove_stale() == [] and folder.exists()
    own(folder, owner.pid)  # raises nothing


def test_a_scratch_folder_ends_with_its_block(temporary: Path) -> None:
    with scratch_folder("e2e") as folder:
        assert folder.parent == temporary and folder.stat().st_mode & 0o777 == 0o755
        assert _record_of(folder).exists() and remove_stale() == []
    assert not folder.exists() and not _record_of(folder).exists()
    remove(folder)  # raises nothing


def change(of: Path, **fields: object) -> None:
    """Change the record of a folder."""
    record = msgspec.json.decode(_record_of(of).read_bytes())
    _record_of(of).write_bytes(msgspec.json.encode(record | fields))
