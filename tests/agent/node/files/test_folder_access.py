"""Users of tenants reach the folders of their workers, or the agent says what is closed to them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from berth_agent.node.config import Config, ConfigError
from berth_agent.node.files.folder_access import check_passage, make_passable
from berth_agent.node.files.folders import Folders

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")
pytestmark = pytest.mark.process


@pytest.fixture
def config() -> Iterator[Config]:
    """Folders that exist, below one that everybody may pass through."""
    with tempfile.TemporaryDirectory(prefix="berth-passage-") as name:
        Path(name).chmod(0o755)
        config = Config(state=f"{name}/agent/state", run=f"{name}/agent/run")
        Folders(config)
        yield config


def test_what_is_made_can_be_passed_and_not_listed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    make_passable(str(tmp_path / "there" / "made" / "inner"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"there": 0o700, "made": 0o711, "inner": 0o711}


@as_root
def test_folders_that_the_agent_makes_are_open_to_tenants(config: Config) -> None:
    check_passage(config)


@as_root
@pytest.mark.parametrize("closed", ["state", "run/telemetry", "."])
def test_a_closed_folder_is_named(config: Config, closed: str) -> None:
    folder = Path(config.state).parent / closed
    folder.chmod(0o700)
    with pytest.raises(ConfigError, match=f"^{folder}: Permission denied for uid 70000"):
        check_passage(config)
    check_passage(replace(config, uid_first=0))


@as_root
def test_a_uid_that_the_kernel_refuses_is_named(config: Config) -> None:
    with pytest.raises(ConfigError, match=r"^uid_first: 4294967295: "):
        check_passage(replace(config, uid_first=2**32 - 1))
