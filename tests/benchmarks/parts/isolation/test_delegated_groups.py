"""A user with groups of its own limits what it starts, as an agent in a unit of systemd can."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.parts.isolation.delegated_groups import below, delegated_groups, words
from benchmarks.parts.isolation.node import ORDINARY_UID
from berth_agent.linux.hierarchies import open_hierarchies

NAME = f"berth-delegated-{os.getpid()}"


@pytest.mark.process
def test_a_command_joins_its_groups_before_it_runs(tmp_path: Path) -> None:
    groups = [tmp_path / "a", tmp_path / "b c"]
    for group in groups:
        group.mkdir()
    command = [*words([str(group) for group in groups]), "echo", "a  b", "--"]
    assert subprocess.check_output(command, text=True) == "a  b --\n"
    assert all((group / "cgroup.procs").read_text().strip().isdigit() for group in groups)
    assert below(str(tmp_path))[-1] == str(tmp_path) and len(below(str(tmp_path))) == 3


@pytest.mark.process
def test_groups_are_given_and_removed() -> None:
    if os.geteuid() != 0 or not (probe := open_hierarchies(f"{NAME}-probe")).limits:
        pytest.skip("no control groups here that root may give")
    probe.remove()
    with delegated_groups(NAME, ORDINARY_UID) as joining:
        user = ["setpriv", f"--reuid={ORDINARY_UID}", "--clear-groups"]
        groups = joining[4:-1]
        script = 'for group; do mkdir "$group/own" && echo $$ > "$group/own/cgroup.procs"; done'
        subprocess.run([*joining, *user, "sh", "-ec", script, "sh", *groups], check=True)
    assert groups and not any(os.path.exists(group) for group in groups)


def test_root_and_who_can_give_nothing_have_no_words() -> None:
    with delegated_groups(NAME, 0) as joining:
        assert joining == []
