"""A step that dies before and after each commit to its disk, and around each fork."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.agent.step_bench import StepBench, until

pytestmark = [pytest.mark.parts, pytest.mark.process]

DIES = """
import itertools, os, signal
moments = itertools.count(1)
def pass_moment(name):
    if next(moments) == {at}:
        open({died!r}, "w").write(name)
        os.kill(os.getpid(), signal.SIGKILL)
def with_moments(call):
    def called(*words, **names):
        pass_moment(call.__name__)
        result = call(*words, **names)
        pass_moment(call.__name__)
        return result
    return called
os.fsync, os.fdatasync = with_moments(os.fsync), with_moments(os.fdatasync)
os.fork, os.rename = with_moments(os.fork), with_moments(os.rename)
"""
"""Kills the process at one of the moments before and after these calls."""
LEAST_MOMENTS = 12


def test_a_step_that_dies_at_any_commit_leaves_nothing_alive_and_runs_nothing_twice() -> None:
    """Each life dies one moment later, until one dies no more. Behind a tombstone nothing starts,
    as when the agent finds that the step is gone."""
    calls = set[str]()
    for moment in count(1):
        with tempfile.TemporaryDirectory(prefix="berth-step-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            bench, died = StepBench(folder), folder / "died"
            ran = bench.work / "ran"
            bench.prelude = DIES.format(at=moment, died=str(died))
            bench.values["argv"] = ["sh", "-c", f"echo once >> {ran}; sleep 600 & exit 3"]
            with suppress(subprocess.CalledProcessError):
                bench.launch()
            until(lambda: died.exists() or bench.phase in ("prepared", "dead"))  # noqa: B023
            bench.go()
            until(lambda: died.exists() or bench.phase == "dead")  # noqa: B023
            until(lambda: bench.living() == [])  # noqa: B023
            before = ran.read_text() if ran.exists() else ""
            assert before in ("", "once\n")
            assert bench.phase != "dead" or died.exists() or bench.state["exit_code"] == 3
            bench.prelude = ""
            bench.stop(0)
            with suppress(subprocess.CalledProcessError):
                bench.launch()
            until(lambda: bench.living() == [])  # noqa: B023
            assert (ran.read_text() if ran.exists() else "") == before
            bench.close()
            if not died.exists():
                break
            calls.add(died.read_text())
    assert before == "once\n" and moment > LEAST_MOMENTS
    assert {"fork", "rename"} < calls and calls & {"fsync", "fdatasync"}
