"""Values of secrets lie in memory, for the agent's user alone, and only as long as needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from berth_agent.node.config import Config
from berth_agent.node.files import secret_folder
from berth_agent.node.files.secret_folder import SHARED, SecretFolder, is_in_memory


@pytest.fixture
def in_memory() -> Iterator[Path]:
    folder = Path(SHARED) / f"berth-test-{uuid4().hex}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def config(run: Path) -> Config:
    return Config(state=str(run / "state"), run=str(run))


def test_a_folder_in_memory_is_known_by_its_file_system() -> None:
    assert is_in_memory(SHARED) and not is_in_memory("/proc")


def test_values_are_kept_for_the_agents_user_and_swept_with_their_worker(in_memory: Path) -> None:
    folder = SecretFolder(config(in_memory))
    assert not (in_memory / "secrets").exists()
    for name in ("0-1-0-0", "0-2-0-0"):
        assert folder.keep(name, {"A": "sesame"}) == ""
    path = Path(folder.path_of("0-1-0-0"))
    assert path == in_memory / "secrets" / "0-1-0-0.json"
    assert path.read_text() == '{"A": "sesame"}'
    modes = [part.stat().st_mode & 0o777 for part in (path, path.parent)]
    assert modes == [0o600, 0o700]
    SecretFolder(config(in_memory)).sweep({str(path)})
    assert os.listdir(path.parent) == ["0-1-0-0.json"]


def test_a_run_folder_on_a_disk_is_replaced_by_one_in_memory(
    tmp_path: Path, in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = secret_folder.is_in_memory
    monkeypatch.setattr(
        secret_folder, "is_in_memory", lambda path: path != str(tmp_path) and present(path)
    )
    monkeypatch.setattr(secret_folder, "SHARED", str(in_memory))
    one, other = (
        SecretFolder(Config(state=state, run=str(tmp_path))).path_of("x") for state in ("/a", "/b")
    )
    assert one.startswith(f"{in_memory}/berth-agent-{os.geteuid()}-") and one != other


def test_a_folder_that_another_made_first_is_not_used(in_memory: Path, tmp_path: Path) -> None:
    secrets = in_memory / "secrets"
    folder = SecretFolder(config(in_memory))
    secrets.symlink_to(tmp_path)
    assert "not a folder of user" in folder.keep("x", {"A": "sesame"})
    secrets.unlink()
    secrets.mkdir(mode=0o755)
    assert "with mode 700" in folder.keep("x", {"A": "sesame"})
    (secrets / "other").touch()
    folder.sweep(set())
    assert list(secrets.iterdir()) == [secrets / "other"] and list(tmp_path.iterdir()) == []


def test_without_memory_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_folder, "is_in_memory", lambda path: False)
    folder = SecretFolder(config(tmp_path))
    assert "a tmpfs is allowed" in folder.keep("x", {"A": "sesame"})
    folder.sweep(set())
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_is_a_problem_of_the_worker_alone(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("berth_agent.linux.files.write_atomic", full)
    assert "No space left" in SecretFolder(config(in_memory)).keep("x", {"A": "sesame"})
