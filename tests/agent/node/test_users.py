"""Users of workers: a uid per tenant, which no other tenant ever gets."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.node.config import Config
from berth_agent.node.users import Users
from berth_agent.step.checks import StartRefused

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")


@as_root
def test_each_tenant_has_a_uid_of_its_own(tmp_path: Path) -> None:
    config = Config(state=str(tmp_path))
    first = Users(config).user_of("red").uid
    assert first == config.uid_first != 0
    assert Users(config).user_of("blue").uid == config.uid_first + 1
    assert Users(config).user_of("red").uid == first


@as_root
def test_root_runs_workers_only_where_the_configuration_says_so(tmp_path: Path) -> None:
    assert Users(Config(state=str(tmp_path), uid_first=0)).user_of("red").uid is None
    named = Users(Config(state=str(tmp_path), users={"red": "root"}))
    assert (named.user_of("red").uid, named.user_of("blue").uid) == (0, 70_000)


@as_root
def test_without_a_free_uid_the_start_is_refused(tmp_path: Path) -> None:
    users = Users(Config(state=str(tmp_path), uid_first=70_000, uid_count=1))
    users.user_of("red")
    with pytest.raises(StartRefused):
        users.user_of("blue")


@as_root
def test_tenants_launched_together_get_different_uids(tmp_path: Path) -> None:
    users = Users(Config(state=str(tmp_path)))
    tenants = [f"tenant-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as launches:
        uids = [user.uid for user in launches.map(users.user_of, tenants * 2)]
    assert len(set(uids)) == len(tenants) and uids[: len(tenants)] == uids[len(tenants) :]


@as_root
def test_a_uid_is_not_given_again_where_the_range_or_the_file_has_changed(tmp_path: Path) -> None:
    files.write_json(str(tmp_path / "uids.json"), {"red": 70_000, "blue": 70_005})
    users = Users(Config(state=str(tmp_path)))
    assert [users.user_of(tenant).uid for tenant in ("green", "red")] == [70_006, 70_000]
    moved = Users(Config(state=str(tmp_path), uid_first=70_003))
    assert [moved.user_of(tenant).uid for tenant in ("grey", "red")] == [70_007, 70_000]
