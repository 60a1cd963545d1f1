"""Groups of a node come and go with its agent; those of workers that live on stay."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import INSTALLATION, NODE, NodeBench, a_node, launch
from tests.agent.step_bench import until

W = "0/5/0/0"


def has_workers(group: Path) -> bool:
    """Whether a worker has a group in this one."""
    return any(path.is_dir() for path in group.iterdir())


def groups_of(node: NodeBench) -> list[Path]:
    """Return the parent groups of the node's workers."""
    return list(Path("/sys/fs/cgroup").rglob(f"berth-{node.node_id}-{INSTALLATION}"))


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
