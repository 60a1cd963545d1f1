"""Where groups can be made they limit; those of a node come and go with its agent."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from berth_agent.linux.hierarchies import LIMITED, open_hierarchies
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import INSTALLATION, NODE, NodeBench, a_node, launch
from tests.agent.step_bench import until

W = "0/5/0/0"


def has_workers(group: Path) -> bool:
    """Return whether a worker has a group in this one."""
    return any(path.is_dir() for path in group.iterdir())


def groups_of(node: NodeBench) -> list[Path]:
    """Return the parent groups of the node's workers."""
    return list(Path("/sys/fs/cgroup").rglob(f"berth-{node.node_id}-{INSTALLATION}"))


def own_of(folder: Path, groups: str, mounts: str) -> str:
    """Return a folder with the groups of a process and the mounts that it sees."""
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text(mounts)
    return str(folder)


def test_version_2_limits_below_a_unit_without_processes_of_its_own(tmp_path: Path) -> None:
    """The kernel makes the files; plain ones stand for them, as one machine has one version."""
    unit = tmp_path / "mount" / "berth.service"
    for group in (unit, unit / "agent", unit / "berth-n"):
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.procs").touch()
        (group / "cgroup.subtree_control").touch()
    (unit / "cgroup.procs").write_text("41\n")
    mounts = f"36 30 0:31 / {tmp_path / 'mount'} rw - cgroup2 cgroup2 rw\n"
    opened = open_hierarchies("berth-n", own_of(tmp_path, "0::/berth.service\n", mounts))
    assert (opened.limits, opened.parents) == ("v2", [str(unit / "berth-n")])
    assert (unit / "agent" / "cgroup.procs").read_text() == "41"
    enabled = [unit / "cgroup.subtree_control", unit / "berth-n" / "cgroup.subtree_control"]
    assert {file.read_text() for file in enabled} == {"+cpu +memory +pids"}


@pytest.mark.parametrize(("members", "below"), [("", ""), ("7\n", "/agent")])
def test_an_agent_that_is_born_in_the_leaf_of_the_last_uses_the_groups_of_its_unit(
    tmp_path: Path, members: str, below: str
) -> None:
    unit = tmp_path / "berth.service"
    for group in (unit, unit / "agent", unit / "agent" / "agent"):
        group.mkdir(parents=True)
        (group / "cgroup.type").touch()
        (group / "cgroup.procs").touch()
    (unit / "cgroup.procs").write_text(members)
    mounts = f"36 30 0:31 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    opened = open_hierarchies("berth-n", own_of(tmp_path, "0::/berth.service/agent\n", mounts))
    assert opened.parents == [f"{unit}{below}/berth-n"]


@pytest.mark.parametrize(("controllers", "limits"), [(LIMITED, "v1"), (("cpu", "memory"), "")])
def test_version_1_limits_where_every_controller_is_writable(
    tmp_path: Path, controllers: tuple[str, ...], limits: str
) -> None:
    groups = "".join(f"{number}:{name}:/jobs\n" for number, name in enumerate(LIMITED, 1))
    mounts = "".join(f"3 2 0:1 / {tmp_path / c} rw - cgroup cgroup rw,{c}\n" for c in controllers)
    opened = open_hierarchies("berth-n", own_of(tmp_path, groups, mounts))
    assert opened.limits == limits
    assert opened.parents == [str(tmp_path / name / "jobs" / "berth-n") for name in controllers]


def test_where_no_group_can_be_made_nothing_is_limited(tmp_path: Path) -> None:
    (tmp_path / "closed").touch()
    mounts = f"36 30 0:31 / {tmp_path / 'closed'} rw - cgroup2 cgroup2 rw\n"
    opened = open_hierarchies("berth-n", own_of(tmp_path, "0::/\n", mounts))
    assert (opened.limits, opened.parents) == ("", [])


@pytest.mark.process
def test_an_agent_that_stops_leaves_no_empty_group() -> None:
    double = ExecutorDouble()
    try:
        with a_node(double, f"{NODE}-groups", cgroups=True) as node:
            if not groups_of(node):
                pytest.skip("this machine permits no groups")
            double.order("prepare", W, launch=launch("exec sleep 600"))
            double.wait_for("ready", W)
            double.order("go", W)
            node.kill(signal.SIGTERM)
            assert groups_of(node), "the worker lives on in its group"
            node.start()
            double.order("stop", W)
            double.wait_for("stopped", W)
            double.order("forget", W)
            until(lambda: not any(map(has_workers, groups_of(node))))
            node.kill(signal.SIGTERM)
            assert not groups_of(node)
    finally:
        double.close()
