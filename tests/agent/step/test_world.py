"""A worker sees folders of its job in place of those that all users may write."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from berth_agent.node.system.machine import REPLACED, probe_kernel
from tests.agent.step_bench import StepBench, until

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not probe_kernel(Config()).mounts, reason="no mount namespaces here"),
]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the user of a worker")
OTHER_UID = 65534
CHANGED = """
import os
import berth_agent.step.main as m
def with_change(call):
    def called(*words):
        path = {path!r}
        {change}
        return call(*words)
    return called
m.{moment} = with_change(m.{moment})
"""
"""A folder changes right before the step checks the start, or forks the worker."""


@pytest.fixture
def bench() -> Iterator[StepBench]:
    """A bench below /tmp, whose worker has folders of its own and keeps its directory."""
    with tempfile.TemporaryDirectory(prefix="berth-step-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        bench = StepBench(Path(name))
        for path in REPLACED:
            own = Path(name, path[1:].replace("/", "-"))
            own.mkdir()
            bench.values["mounts"].append([str(own), path])
        bench.values["kept"] = [str(bench.work)]
        yield bench
        bench.close()


@pytest.fixture
def leftover() -> Iterator[str]:
    """A file of another job in each of the folders; its name."""
    name = f"leftover-{secrets.token_hex(4)}"
    paths = [Path(folder, name) for folder in REPLACED]
    for path in paths:
        path.write_text("weights")
    yield name
    for path in paths:
        path.unlink()


@pytest.mark.parametrize(
    "pid_namespace", [True, pytest.param(False, marks=as_root)], ids=["namespace", "sweep"]
)
def test_a_worker_sees_folders_of_its_own_and_its_directory(
    bench: StepBench, leftover: str, pid_namespace: bool
) -> None:
    bench.values["pid_namespace"] = pid_namespace
    folders = " ".join(REPLACED)
    bench.start(f"for f in {folders}; do ls $f/{leftover}; echo mine > $f/mine; done; pwd > here")
    assert bench.end()["exit_code"] == 0
    assert bench.output().count("No such file") == len(REPLACED)
    for source, path in bench.values["mounts"]:
        assert Path(source, "mine").read_text() == "mine\n" and not Path(path, "mine").exists()
    assert (bench.work / "here").read_text() == f"{bench.work}\n"


@as_root
def test_the_user_of_a_worker_reaches_its_directory_and_no_other(bench: StepBench) -> None:
    """A folder that is kept is opened as that user: a closed one stays closed."""
    closed = bench.work.parent / "closed"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    bench.values |= {"uid": OTHER_UID, "gid": OTHER_UID, "groups": [OTHER_UID]}
    bench.values["kept"].append(str(closed / "open"))
    for source, _ in bench.values["mounts"]:
        os.chown(source, OTHER_UID, OTHER_UID)
    os.chown(bench.work, OTHER_UID, OTHER_UID)
    bench.start(f"touch /tmp/mine here; id -u; ls {closed}/open")
    assert bench.end()["exit_code"] != 0
    assert bench.output().splitlines()[0] == str(OTHER_UID) and "No such file" in bench.output()
    assert (bench.work / "here").exists()


@as_root
def test_an_engine_that_is_root_shows_nothing_that_its_user_may_not_enter(bench: StepBench) -> None:
    """A kept folder is opened as the user to whom the program of the container belongs."""
    closed = bench.work.parent / "closed"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    bench.values |= {"uid": None, "owner": OTHER_UID, "gid": OTHER_UID, "groups": [OTHER_UID]}
    bench.values["kept"].append(str(closed / "open"))
    for source, _ in bench.values["mounts"]:
        os.chown(source, OTHER_UID, OTHER_UID)
    bench.start(f"id -u; ls {closed}/open")
    assert bench.end()["exit_code"] != 0
    assert bench.output().splitlines()[0] == "0" and "No such file" in bench.output()


def test_a_link_in_a_folder_of_the_job_leads_nowhere(bench: StepBench) -> None:
    """Another worker of the job could plant one where a directory of the host is to be shown."""
    own_tmp = Path(bench.values["mounts"][0][0])
    (own_tmp / bench.work.parent.name).symlink_to("/etc")
    bench.start("touch ran")
    end = bench.end()
    assert (end["failure"]["reason"], end["exit_code"]) == ("check_failed", None)
    assert not (bench.work / "ran").exists() and not Path("/etc/work").exists()


def test_a_program_that_the_job_cannot_see_is_named_with_the_reason(bench: StepBench) -> None:
    program = bench.work.parent / "train"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    bench.values["argv"] = [str(program)]
    bench.prepare()
    failure = bench.end()["failure"]
    assert failure["reason"] == "command_missing"
    assert failure["detail"] == (
        f"{program}: no such file: /tmp is the job's own, of the node's it sees its workdir"
    )


def test_a_worker_with_its_own_folders_ends_with_its_step(bench: StepBench) -> None:
    bench.start("echo up; exec sleep 600")
    bench.line("up")
    [worker] = bench.living()
    ticks = processes.started_ticks(worker)
    bench.kill_step()
    until(lambda: not processes.is_alive(worker, ticks))


@pytest.mark.parametrize(
    "change",
    [
        "os.rmdir(path)",
        "os.rmdir(path); os.symlink({work!r}, path)",
        pytest.param(f"os.chown(path, {OTHER_UID}, {OTHER_UID})", marks=as_root),
    ],
)
@pytest.mark.parametrize(
    ("moment", "reason"), [("checks.check_start", "check_failed"), ("Worker", "start_failed")]
)
def test_a_folder_that_is_gone_or_that_another_user_put_in_place_is_not_shown(
    bench: StepBench, change: str, moment: str, reason: str
) -> None:
    """Anybody may make an entry in /dev/shm, once its name is free. The worker never runs with the
    folders of the machine instead."""
    path, change = bench.values["mounts"][2][0], change.format(work=str(bench.work))
    bench.prelude = CHANGED.format(path=path, change=change, moment=moment)
    bench.values["argv"] = ["touch", str(bench.work / "ran")]
    bench.prepare()
    bench.go()
    assert bench.end()["failure"]["reason"] == reason
    assert not (bench.work / "ran").exists()
