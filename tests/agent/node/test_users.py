"""Users of workers: a uid per tenant, which no other tenant ever gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
