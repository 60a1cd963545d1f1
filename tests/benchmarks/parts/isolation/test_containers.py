"""The node in a container is where its settings say, seen through its first process."""

from __future__ import annotations

from pathlib import Path

from benchmarks.parts.isolation.containers import containers_node


def test_paths_of_the_container_are_found_on_this_machine() -> None:
    node = containers_node(7)
    state = node.on_machine(node.state)
    assert state == Path("/proc/7/root/data/agent") and node.on_node(state) == node.state
    assert node.run.parts[:2] == ("/", "tmp") and node.disk_gib > 0
