"""The agent of an ordinary user, without control groups: what such a node promises, and does."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.system.machine import COUNTS_PIDS, release
from tests.agent.executor_double import ExecutorDouble, Refuse
from tests.agent.node_bench import NODE, NodeBench, W, line, run
from tests.agent.step_bench import until

pytestmark = pytest.mark.process

UID = 54_321 if os.geteuid() == 0 else os.geteuid()
"""No user has this one; an ordinary user that runs the tests is one already."""
SHORT_S = 3.0


def as_user() -> list[str]:
    """Return what runs a command as the ordinary user."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]


def python_of_user() -> str:
    """Return a Python that the ordinary user may run, new enough for the agent; or skip."""
    # `setpriv` itself starts what root alone may start: the agent could start none of its steps.
    check = (
        "import os, sys; is_new = sys.version_info >= (3, 11); "
        "sys.exit(not (is_new and os.access(sys.executable, os.X_OK)))"
    )
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([*as_user(), python, "-c", check], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip("no Python 3.11 that an ordinary user may run")


class OrdinaryNode(NodeBench):
    """A node whose agent, with a copy of its package, belongs to the ordinary user."""

    def __init__(self, folder: Path, executor: str) -> None:
        super().__init__(folder, NODE, executor)
        self.python = python_of_user()
        self.within = as_user()
        self.settings |= {"cgroups": True, "private_tmp": True, "uid_first": 70_000}
        shutil.copytree(
            self.code / "berth_agent",
            folder / "code" / "berth_agent",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        self.code = folder / "code"
        for path in (folder, *folder.rglob("*")):
            os.chown(path, UID, UID if os.geteuid() == 0 else -1)

    def command(self, *arguments: str) -> list[str]:
        return [self.python, *super().command(*arguments)[1:]]


@contextmanager
def an_ordinary_node(
    double: ExecutorDouble, place: str | None = None, **settings: object
) -> Iterator[OrdinaryNode]:
    with tempfile.TemporaryDirectory(
        prefix="berth-node-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        Path(folder).chmod(0o755)
        node = OrdinaryNode(Path(folder), double.url)
        node.settings |= settings
        try:
            node.start()
            double.wait(lambda: double.joined is not None)
            yield node
        finally:
            node.close()


@pytest.mark.parametrize("pid_namespaces", [True, False])
def test_its_node_says_what_it_lacks_and_runs_jobs_as_itself(
    double: ExecutorDouble, pid_namespaces: bool
) -> None:
    with an_ordinary_node(double, pid_namespaces=pid_namespaces) as node:
        registration = double.wait_for("registration")
        assert registration.limits == "", "no group of this user is writable"
        assert registration.labels["berth.user"] == "agent"
        assert registration.labels["berth.images"] == "no"
        if not pid_namespaces:
            assert registration.fencing == "advice"
        run(double, "id -u; exit 7", cpus=1, mem_gib=1)
        assert double.wait_for("exited", W).exit_code == 7
        assert node.output(W) == f"{UID}\n"
        assert node.living() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: no place outside of what jobs have anyway")
def test_its_worker_sees_no_folder_of_the_agent_but_its_own(double: ExecutorDouble) -> None:
    with an_ordinary_node(double, "/var/lib") as node:
        if double.wait_for("registration").labels["berth.tmp"] != "job":
            pytest.skip("users make no namespaces here")
        look = f"pwd; touch mine; ls -A {node.state} {node.run_folder}"
        wait = "until test -S $BERTH_TELEMETRY; do sleep 0.1; done"
        run(double, f"{look}; {wait}; cat {node.state}/identity.json", W)
        assert double.wait_for("exited", W).exit_code == 1
        folder, *lines = node.output(W).splitlines()
        assert folder == f"{node.state}/work/j1.1.0" and Path(folder, "mine").exists()
        shown = [f"{node.run_folder}:", "telemetry", "", f"{node.state}:", "work"]
        assert sorted(lines[:5]) == sorted(shown)
        assert "No such file" in lines[5] and "identity.json" in lines[5]


def test_its_worker_forks_within_a_bound_that_counts_no_other_worker(
    double: ExecutorDouble,
) -> None:
    with an_ordinary_node(double, max_pids=20) as node:
        if double.wait_for("registration").fencing != "kernel" or release() < COUNTS_PIDS:
            pytest.skip("users make no namespaces that count processes here")
        fork = "i=0; while [ $i -lt {}0 ]; do sleep 600 & i=$((i + 1)); done; echo forked; wait"
        for number, name in enumerate((W, "0/6/0/0")):
            run(double, fork.format(1), name, job_id=f"j{number}")
            line(node, "forked", name)
        run(double, fork.format(3), "0/7/0/0", job_id="j7")
        until(lambda: "fork" in node.output("0/7/0/0"))
        assert "forked" not in node.output("0/7/0/0")


@pytest.mark.parametrize("pid_namespaces", [True, False])
def test_whatever_a_worker_started_ends_with_its_step(
    double: ExecutorDouble, pid_namespaces: bool
) -> None:
    """By the kernel where users may make namespaces, else by the agent's sweep."""
    with an_ordinary_node(double, pid_namespaces=pid_namespaces) as node:
        run(double, "setsid sh -c 'echo escaped; exec sleep 600' & echo up; exec sleep 600")
        line(node, "escaped")
        os.kill(node.step(W)["pid"], signal.SIGKILL)
        assert double.wait_for("exited", W).failure.reason == "step_lost"
        assert node.living() == []


def test_its_worker_outlives_the_agent_and_a_stop_ends_all_of_it(double: ExecutorDouble) -> None:
    with an_ordinary_node(double, pid_namespaces=False) as node:
        run(double, "setsid sh -c 'echo escaped; exec sleep 600' & echo up; exec sleep 600")
        line(node, "escaped")
        step = node.step(W)
        node.kill()
        assert processes.is_alive(step["pid"], step["ticks"])
        hellos = len(double.hellos)
        node.start()
        double.wait(lambda: len(double.hellos) > hellos)
        double.order("stop", W, grace_s=0.0)
        double.wait_for("stopped", W)
        assert node.living() == []


def test_the_end_of_the_lease_ends_its_worker(double: ExecutorDouble) -> None:
    double.terms["stop_after_s"] = SHORT_S
    with an_ordinary_node(double, pid_namespaces=False) as node:
        run(double, "setsid sh -c 'echo escaped; exec sleep 600' & echo up; exec sleep 600")
        line(node, "escaped")

        def cut(endpoint: str, message: object) -> None:
            raise Refuse(503)

        double.before = cut
        until(lambda: node.living() == [])
        double.before = lambda endpoint, message: None
        assert double.wait_for("exited", W).failure.reason == "fenced"
