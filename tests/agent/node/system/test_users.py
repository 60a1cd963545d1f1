"""Users of workers: a uid per tenant, the same on all nodes, which no other tenant ever gets."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from berth_agent.linux import files
from berth_agent.node.config import Config
from berth_agent.node.system.users import Users
from berth_agent.step.checks import StartRefused

NUMBERS = {"blue": 0, "red": 3}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives workers a user")


@as_root
def test_a_tenant_has_the_uid_of_its_number_on_every_node(tmp_path: Path) -> None:
    for node in ("a", "b"):
        (tmp_path / node).mkdir()
        users = Users(Config(state=str(tmp_path / node)))
        order = ("red", "blue") if node == "a" else ("blue", "red")
        uids = {tenant: users.user_of(tenant, NUMBERS[tenant]).uid for tenant in order}
        assert uids == {"red": 70_003, "blue": 70_000}


@as_root
def test_root_runs_workers_only_where_the_configuration_says_so(tmp_path: Path) -> None:
    assert Users(Config(state=str(tmp_path), uid_first=0)).user_of("red", 3).uid is None
    named = Users(Config(state=str(tmp_path), users={"red": "root"}))
    assert (named.user_of("red", 3).uid, named.user_of("blue", 0).uid) == (0, 70_000)


@as_root
def test_a_user_of_a_tenant_goes_before_the_tenant(tmp_path: Path) -> None:
    mapped = {"red/ada": "daemon", "red": "nobody"}
    users = Users(Config(state=str(tmp_path), users=mapped))
    names = {name: users.user_of("red", 3, name).name for name in ("ada", "bob", "")}
    assert names == {"ada": "daemon", "bob": "nobody", "": "nobody"}
    assert users.user_of("blue", 0, "ada").uid == 70_000


@as_root
@pytest.mark.parametrize("number", [1, None])
def test_without_a_free_uid_the_start_is_refused(tmp_path: Path, number: int | None) -> None:
    users = Users(Config(state=str(tmp_path), uid_first=70_000, uid_count=1))
    users.user_of("red", 0)
    with pytest.raises(StartRefused):
        users.user_of("blue", number)


@as_root
def test_tenants_launched_together_get_different_uids(tmp_path: Path) -> None:
    users = Users(Config(state=str(tmp_path)))
    launched = [(f"tenant-{number}", number if number % 2 else None) for number in range(40)] * 2
    with ThreadPoolExecutor(8) as launches:
        uids = [user.uid for user in launches.map(lambda t: users.user_of(*t), launched)]
    assert len(set(uids)) == 40 and uids[:40] == uids[40:]


@as_root
def test_a_node_that_gave_uids_by_itself_gives_none_of_them_to_another_tenant(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files.write_json(str(tmp_path / "uids.json"), {"red": 70_000, "blue": 70_001})
    users = Users(Config(state=str(tmp_path)))
    numbers = {"blue": 0, "green": 1, "red": 3, "grey": 4}
    uids = {tenant: users.user_of(tenant, number).uid for tenant, number in numbers.items()}
    assert uids == {"blue": 70_001, "green": 75_000, "red": 70_000, "grey": 70_004}
    assert Users(Config(state=str(tmp_path))).user_of("green", 1).uid == 75_000
    users.user_of("red", 3)
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        "tenant blue: keeps uid 70001 of this node; on other nodes it is 70000",
        "tenant green: keeps uid 75000 of this node; on other nodes it is 70001",
        "tenant red: keeps uid 70000 of this node; on other nodes it is 70003",
        "tenant green: keeps uid 75000 of this node; on other nodes it is 70001",
    ]


@as_root
def test_an_executor_that_knows_no_numbers_leaves_their_uids_free(tmp_path: Path) -> None:
    users = Users(Config(state=str(tmp_path)))
    assert users.user_of("red", None).uid == 75_000
    assert users.user_of("blue", 5000).uid == 75_001
    assert users.user_of("green", 1).uid == 70_001


@as_root
def test_a_uid_is_not_given_again_where_the_range_has_changed(tmp_path: Path) -> None:
    Users(Config(state=str(tmp_path))).user_of("red", 3)
    moved = Users(Config(state=str(tmp_path), uid_first=70_002))
    assert [moved.user_of(*t).uid for t in (("grey", 1), ("red", 3))] == [75_002, 70_003]
