"""Workers in containers, with a real Podman where it is installed; one node runs them all."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth_agent.linux import processes
from berth_agent.node.config import Config
from berth_agent.node.files.allocation import read_folder
from berth_agent.node.launch.containers import find_engine
from berth_agent.node.system.machine import probe_kernel
from tests.agent.executor_double import ExecutorDouble
from tests.agent.node_bench import NodeBench, a_node, launch, line, run
from tests.agent.step_bench import until
from tests.agent.terminal_bench import OpenTerminal

ENGINE = find_engine(Config(), probe_kernel(Config()))
BUSYBOX = shutil.which("busybox")
pytestmark = [
    pytest.mark.process,
    pytest.mark.parts,
    pytest.mark.skipif(not ENGINE, reason="no Podman here, or not root"),
    pytest.mark.skipif(not BUSYBOX, reason="no busybox-static here"),
]
TOOLS = ("sh", "id", "ls", "sleep", "cat", "touch", "env", "grep", "sha256sum")
FIRST_UID = 70_000
MARKER = "marker-90b2 'ä'"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of one program, made from a package; no registry is needed."""
    assert BUSYBOX is not None and ENGINE is not None
    path = tmp_path_factory.mktemp("image") / "image.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(os.path.realpath(BUSYBOX), "bin/busybox")
        for tool in TOOLS:
            link = tarfile.TarInfo(f"bin/{tool}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    name = f"localhost/berth-test-{os.getpid()}:1"
    made = [ENGINE.program, "import", "-q", "--change", "VOLUME /kept", str(path), name]
    subprocess.run(made, check=True, capture_output=True)
    yield name
    subprocess.run([ENGINE.program, "rmi", name], check=False, capture_output=True)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder outside of those that a job has of its own."""
    with tempfile.TemporaryDirectory(prefix="berth-", dir="/opt") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def double() -> Iterator[ExecutorDouble]:
    double = ExecutorDouble()
    yield double
    double.close()


@pytest.fixture(scope="module")
def node(double: ExecutorDouble, folder: Path) -> Iterator[NodeBench]:
    data, prolog = folder / "data", folder / "prolog"
    data.mkdir()
    (data / "set").write_text("samples\n")
    prolog.write_text("#!/bin/sh\necho prolog in $BERTH_WORKDIR\n")
    prolog.chmod(0o755)
    with a_node(double, start=False) as node:
        node.settings |= {"private_tmp": True, "uid_first": FIRST_UID, "work": f"{folder}/work"}
        node.settings |= {"prolog": str(prolog), "cgroups": True}
        written = node.command

        def command(*arguments: str) -> list[str]:
            words = written(*arguments)
            node.config.write_text(f'{node.config.read_text()}\n[image_mounts]\n"{data}" = "ro"\n')
            return words

        node.command = command  # type: ignore[method-assign]
        node.start()
        double.wait(lambda: double.joined is not None)
        yield node


def test_a_program_of_an_image_runs_as_its_tenant_and_sees_what_is_allowed(
    double: ExecutorDouble, node: NodeBench, folder: Path, image: str
) -> None:
    assert double.wait_for("registration").labels["berth.images"] == "yes"
    script = (
        "id -u; echo $WORD; echo $RANK:$MASTER_PORT; pwd; touch here /tmp/mine /dev/shm/mine; "
        f"cat {folder}/data/set; until test -w $BERTH_TELEMETRY; do sleep 0.1; done; "
        f"touch {folder}/data/new; ls {node.state} /work /kept; exit 7"
    )
    env, name = {"WORD": "a b='c'"}, "0/5/0/0"
    run(double, script, name, image=image, env=env, tenant_number=4)
    exited = double.wait_for("exited", name)
    port = double.wait_for("ready", name).master_port
    work = folder / "work" / "j1.1.0"
    prolog, *lines = node.output(name).splitlines()
    assert prolog == f"prolog in {work}"
    assert lines[:5] == [str(FIRST_UID + 4), "a b='c'", f"0:{port}", str(work), "samples"]
    assert "Read-only file system" in lines[5] and exited.exit_code == 7
    assert sum("No such file" in line for line in lines) == 3
    assert (work / "here").stat().st_uid == FIRST_UID + 4


def test_a_program_of_an_image_gets_its_secrets_and_no_disk_does(
    double: ExecutorDouble, node: NodeBench, folder: Path, image: str
) -> None:
    secrets = {"env": {"PASS": "secret://db"}, "secrets": {"PASS": MARKER}}
    name = "0/6/0/0"
    run(double, 'echo "$PASS" | sha256sum; exec sleep 600', name, image=image, **secrets)
    digest = subprocess.run(["sha256sum"], input=f"{MARKER}\n".encode(), stdout=-1, check=True)
    line(node, digest.stdout.decode().split()[0], name)
    files = [path for path in (*folder.rglob("*"), *node.state.rglob("*")) if path.is_file()]
    assert len(files) > 10 and any(".scratch" in path.parts for path in files)
    for path in files:
        assert b"marker-90b2" not in path.read_bytes(), path
    engines = [pid for pid in node.living() if Path(f"/proc/{pid}").stat().st_uid == 0]
    for pid in engines:
        for file in ("environ", "cmdline"):
            assert b"marker-90b2" not in Path(f"/proc/{pid}/{file}").read_bytes()
    assert len(engines) >= 3, "step, init and engine"
    double.order("stop", name, grace_s=0.0)
    double.wait_for("stopped", name)
    secrets["secrets"]["PASS"] = "two\nlines"
    double.order("prepare", "0/7/0/0", launch=launch("true", image=image, **secrets))
    failure = double.wait_for("refused", "0/7/0/0").failure
    assert (failure.reason, failure.permanent) == ("secret_unusable", True)


def test_a_failure_says_whether_image_or_program_is_missing(
    double: ExecutorDouble, node: NodeBench, image: str
) -> None:
    order, name = launch(["no-such-program"], image=image), "0/8/0/0"
    double.order("prepare", name, launch=order)
    double.wait_for("ready", name)
    double.order("go", name)
    failure = double.wait_for("exited", name).failure
    assert (failure.reason, failure.permanent) == ("command_missing", True)
    assert "no-such-program" in failure.detail
    order = launch("true", image="localhost:1/no/such:1")
    double.order("prepare", "0/9/0/0", launch=order)
    failure = double.wait_for("refused", "0/9/0/0").failure
    assert (failure.reason, failure.permanent) == ("image_unreachable", False)
    order = launch("true", image=image, workdir="/etc")
    double.order("prepare", "0/10/0/0", launch=order)
    assert double.wait_for("refused", "0/10/0/0").failure.reason == "workdir_missing"


def test_a_stop_ends_the_pull_of_an_image(double: ExecutorDouble, node: NodeBench) -> None:
    """Here from a registry that takes connections and never answers."""
    name = "0/13/0/0"
    with socket.create_server(("127.0.0.1", 0)) as registry:
        image = f"localhost:{registry.getsockname()[1]}/image:1"
        double.order("prepare", name, launch=launch("true", image=image))
        with registry.accept()[0]:
            double.order("stop", name, grace_s=0.0)
            assert double.wait_for("stopped", name).exit_code is None
    assert not node.living()


def test_a_container_is_warned_of_its_walltime_and_saves_when_it_is_stopped(
    double: ExecutorDouble, node: NodeBench, image: str
) -> None:
    script = "trap 'echo warned' USR1; trap 'echo saved; exit 3' TERM; while :; do sleep 0.1; done"
    name = "0/11/0/0"
    run(double, script, name, image=image, walltime_s=16.0, grace_s=60.0)
    line(node, "warned", name)
    double.order("stop", name, grace_s=60.0)
    assert double.wait_for("stopped", name).exit_code == 3
    assert "saved" in node.output(name)


def test_a_container_ends_with_its_step_and_outlives_the_agent(
    double: ExecutorDouble, node: NodeBench, folder: Path, image: str
) -> None:
    """The kernel ends it: it is in the pid namespace of the worker's init."""
    name = "0/12/0/0"
    run(double, "echo up; while :; do sleep 0.1; done", name, image=image)
    line(node, "up", name)
    living = [(pid, processes.started_ticks(pid)) for pid in node.living()]
    assert len(living) >= 3, "step, engine and program"
    node.kill()
    assert all(processes.is_alive(*process) for process in living[:2])
    os.kill(node.step(name)["pid"], signal.SIGKILL)
    until(lambda: not any(processes.is_alive(*process) for process in living))
    mounted = Path("/proc/self/mounts").read_text()
    assert str(folder) not in mounted
    node.start()


def test_a_terminal_is_in_the_container_and_ends_with_it(
    double: ExecutorDouble, node: NodeBench, image: str
) -> None:
    name = "0/25/0/0"
    run(double, "echo up; sleep 600", name, image=image, env={"WORD": "tin"}, tenant_number=4)
    until(lambda: "up" in node.output(name).splitlines())
    allocation = read_folder(f"{node.state}/allocations/0-25-0-0")
    assert allocation is not None
    ended = OpenTerminal(allocation, "sh", "-c", "id -u; echo $WORD; ls /bin; exit 7").end()
    uid, word, *tools = ended.output.splitlines()
    assert (int(uid), word) == (FIRST_UID + 4, "tin") and set(TOOLS) <= set(tools)
    assert ended.status == f"S W{7 << 8}"
    shell = OpenTerminal(allocation, tty=True)
    shell.program.write(b"echo $((6 * 7)); grep CapEff /proc/self/status; exit 3\n")
    ended = shell.end()
    assert "42\r\n" in ended.output and "CapEff:\t0000000000000000" in ended.output
    assert ended.status == f"S W{3 << 8}"
    left = OpenTerminal(allocation, "sh", "-c", "trap '' HUP; echo in; sleep 613; sleep 614")
    left.until("in")
    mark = os.path.basename(left.program.folder)
    assert list(processes.with_token(mark, ("BERTH_TERMINAL",)))
    left.program.close()
    allocation.wake()
    until(lambda: not list(processes.with_token(mark, ("BERTH_TERMINAL",))))
    stays = OpenTerminal(allocation, "sh", "-c", "echo in; sleep 615")
    stays.until("in")
    double.order("stop", name, grace_s=0.0)
    double.wait_for("stopped", name)
    mark = os.path.basename(stays.program.folder)
    assert not list(processes.with_token(mark, ("BERTH_TERMINAL",)))
