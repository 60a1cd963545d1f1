"""An agent that dies before and after each commit to its disk, and around the start of a step."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from berth_agent.linux import files
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, a_node, launch
from tests.agent.step_bench import until

pytestmark = [pytest.mark.parts, pytest.mark.process]

DIES = """
import itertools, os, signal, subprocess
at, moments = int(open({path!r}).read()), itertools.count(1)
def pass_moment():
    if next(moments) == at:
        os.kill(os.getpid(), signal.SIGKILL)
def with_moments(call):
    def called(*words, **names):
        pass_moment()
        result = call(*words, **names)
        pass_moment()
        return result
    return called
os.fsync, os.fdatasync = with_moments(os.fsync), with_moments(os.fdatasync)
subprocess.run = with_moments(subprocess.run)
rename, commit = os.rename, with_moments(os.rename)
os.rename = lambda old, new: (commit if "/allocations/" in old else rename)(old, new)
"""
"""Kills the process at one of the moments before and after these calls; at the moment 0 never."""
LEAST_MOMENTS = 20


class Mortal:
    """A node whose agent dies at a moment of its life, and is started again."""

    def __init__(self, node: NodeBench, moment: Path) -> None:
        self.node = node
        self.moment = moment
        self.died = False

    @contextmanager
    def lives(self, moment: int) -> Iterator[None]:
        """Run an agent that dies at this moment."""
        self.died = False
        self.moment.write_text(str(moment))
        self.node.start()
        yield
        self.node.kill()

    def is_back(self) -> bool:
        """Start the agent again if it has died."""
        assert self.node.process is not None
        code = self.node.process.poll()
        if code is not None:
            assert code == -signal.SIGKILL and not self.died, self.node.log.read_text()
            self.died = True
            self.moment.write_text("0")
            self.node.start()
        return True


@pytest.fixture
def mortal(double: ExecutorDouble, tmp_path: Path) -> Iterator[Mortal]:
    moment = tmp_path / "moment"
    (tmp_path / "sitecustomize.py").write_text(DIES.format(path=str(moment)))
    with a_node(double, start=False) as node:
        node.code = Path(f"{tmp_path}{os.pathsep}{node.code}")
        yield Mortal(node, moment)


def test_an_agent_that_dies_at_any_commit_loses_and_doubles_nothing(
    double: ExecutorDouble, mortal: Mortal
) -> None:
    """The first life registers; each later one dies one moment later, until one dies no more."""
    node = mortal.node
    with mortal.lives(0):
        double.wait(lambda: double.joined is not None)
    for moment in count(1):
        name = f"0/{100 + moment}/0/0"
        ran = node.state / f"ran-{moment}"
        work = f"echo once >> {ran}; exit 3"
        with mortal.lives(moment):
            double.order("prepare", name, launch=launch(work, job_id=f"j{moment}"))
            until(lambda: mortal.is_back() and bool(double.of_kind("ready", name)))  # noqa: B023
            double.order("go", name)
            until(lambda: mortal.is_back() and bool(double.of_kind("exited", name)))  # noqa: B023
            double.order("forget", name)
            until(lambda: mortal.is_back() and not node.folder(name).exists())  # noqa: B023
        assert {report.exit_code for report in double.of_kind("exited", name)} == {3}
        assert ran.read_text() == "once\n" and not double.of_kind("stopped", name)
        if not mortal.died:
            break
    assert moment > LEAST_MOMENTS
    assert len(double.of_kind("registration")) == 1
    assert files.read_json(str(node.state / "incarnation.json"))["incarnation"]["generation"] == 1
