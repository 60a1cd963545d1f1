"""Groups and files that a node left behind are listed while groups of others go."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.parts.chaos.nodes import node


def test_groups_of_a_node_are_listed_while_those_of_others_go(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("berth-n1-0/2-7-0", "berth-n1-0/2-8-0", "berth-n2-0", "going/inner"):
        (tmp_path / "memory" / name).mkdir(parents=True)
    scan = os.scandir

    def end_then_scan(path: Any = ".") -> Any:
        """Remove a group between the look at its parent and the look into it."""
        if os.path.basename(path) == "going":
            (tmp_path / "memory/going/inner").rmdir()
            (tmp_path / "memory/going").rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", end_then_scan)
    monkeypatch.setattr(node, "CGROUPS", tmp_path)
    left = node.RealNode("n1", tmp_path / "n1", None, 2).left_behind()
    parent = tmp_path / "memory/berth-n1-0"
    assert sorted(left) == [str(parent / "2-7-0"), str(parent / "2-8-0")]
    assert not (tmp_path / "memory/going").exists()
