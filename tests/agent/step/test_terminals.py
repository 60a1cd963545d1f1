"""Programs of terminals within a real worker: the agent's side of the files, and the step's."""

from __future__ import annotations

import os
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from berth_agent.linux import files, processes
from berth_agent.messages import Launch, Order, Position, TerminalRequest
from berth_agent.node.executor.terminal_program import TerminalRefused
from berth_agent.node.executor.terminals import NodeTerminals
from berth_agent.node.files.allocation import AllocationFolder
from berth_agent.step.spec import Spec
from berth_agent.step.terminals import Terminals
from tests.agent.step.test_injected_worker import inject, is_stopped
from tests.agent.step_bench import StepBench, until
from tests.agent.terminal_bench import OpenTerminal

pytestmark = pytest.mark.process

NAMESPACES = pytest.mark.parametrize("pid_namespace", [True, False])


@pytest.fixture
def bench() -> Iterator[StepBench]:
    with tempfile.TemporaryDirectory(prefix="berth-step-") as name:
        Path(name).chmod(0o755)
        bench = StepBench(Path(name))
        yield bench
        bench.close()


def allocation_of(bench: StepBench) -> AllocationFolder:
    """Return the bench's worker as the agent has it."""
    launch = Launch(
        job_id="j",
        tenant="t",
        attempt=1,
        rank=0,
        world_size=1,
        local_rank=0,
        local_world_size=1,
        node_rank=0,
        nodes=1,
        gpu_milli=1000,
        cpus=1.0,
        mem_gib=1.0,
        grace_s=1.0,
    )
    order = Order(
        kind="prepare",
        position=Position(),
        incarnation="a" * 32,
        allocation_id="0/1/0/0",
        launch=launch,
    )
    return AllocationFolder(str(bench.folder), order, "", state=bench.state)


def opened(bench: StepBench, *command: str, tty: bool = False) -> OpenTerminal:
    """Open a terminal in the bench's worker."""
    return OpenTerminal(allocation_of(bench), *command, tty=tty)


def start(bench: StepBench, **values: Any) -> None:
    bench.values |= values
    bench.start("echo $$ > pid; echo up; exec sleep 600")
    bench.line("up")


def test_a_folder_that_goes_during_a_look_ends_no_step(
    bench: StepBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminals = Terminals(str(bench.folder), Spec(bench.values), 0, select.poll())
    monkeypatch.setattr(os, "access", lambda *_: True)
    terminals.look(0, held=False)


@NAMESPACES
def test_a_program_runs_in_the_workers_world(bench: StepBench, pid_namespace: bool) -> None:
    bench.values["env"] |= {"GREETING": "hello"}
    start(bench, pid_namespace=pid_namespace)
    script = "pwd; echo $GREETING $BERTH_TERMINAL; cat pid; readlink /proc/self/ns/mnt; exit 7"
    terminal = opened(bench, "sh", "-c", script)
    ended = terminal.end()
    folder, greeting, pid, mounts = ended.output.splitlines()
    assert folder == str(bench.work)
    assert greeting.startswith("hello ") and len(greeting.split()[1]) == 32
    assert ended.status == f"S W{7 << 8}"
    init = bench.state["init_pid"]
    assert mounts == os.readlink(f"/proc/{init}/ns/mnt")
    if pid_namespace:
        assert int(pid) < 20, "a pid of the worker's namespace"


@NAMESPACES
def test_a_terminal_has_a_size_and_its_interrupt(bench: StepBench, pid_namespace: bool) -> None:
    start(bench, pid_namespace=pid_namespace)
    # An interrupt ahead of the fork of a long sleep would be seen at its end alone.
    waits = "while :; do sleep 0.1; done"
    script = f"trap 'stty size; exit 5' INT; stty size; tty; echo $TERM; {waits}"
    terminal = opened(bench, "sh", "-c", script, tty=True)
    terminal.until("xterm\r\n")
    terminal.program.resize(10, 20)
    terminal.program.write(b"\x03")
    ended = terminal.end()
    assert "33 111\r\n" in ended.output and "10 20\r\n" in ended.output
    assert "/dev/pts/" in ended.output
    assert ended.status == f"S W{5 << 8}"


def test_without_a_command_there_is_a_shell(bench: StepBench) -> None:
    start(bench)
    terminal = opened(bench, tty=True)
    terminal.program.write(b"echo $((40 + 2)); exit 3\n")
    ended = terminal.end()
    assert "42\r\n" in ended.output and ended.status == f"S W{3 << 8}"


def test_a_terminal_has_the_filter_of_calls_that_its_worker_has(bench: StepBench) -> None:
    start(bench, seccomp=True)
    terminal = opened(bench, "grep", "^Seccomp:", "/proc/self/status")
    ended = terminal.end()
    assert ended.output.split() == ["Seccomp:", "2"]


def test_input_ends(bench: StepBench) -> None:
    start(bench)
    terminal = opened(bench, "sh", "-c", "wc -c; echo failed >&2; kill -SEGV $$")
    terminal.program.write(b"x" * 1000)
    until(lambda: bool(terminal.read()) or b"S" in terminal.status)
    terminal.program.end_input()
    ended = terminal.end()
    assert "1000" in ended.output and "failed" in ended.output
    assert int(ended.status[3:]) & 0x7F == 11


def test_a_command_that_is_missing(bench: StepBench) -> None:
    start(bench)
    # The program that failed to start ends too, which may be read already.
    assert opened(bench, "no-such-command").end().status in ("S F2", f"S F2 W{127 << 8}")


@NAMESPACES
def test_what_it_left_ends_with_it(bench: StepBench, pid_namespace: bool) -> None:
    """A child in a session of its own, that ignores hangups, of a program that does too."""
    start(bench, pid_namespace=pid_namespace)
    script = (
        "trap '' HUP; setsid sh -c 'trap \"\" HUP; echo apart; sleep 611' & echo up2; sleep 612"
    )
    terminal = opened(bench, "sh", "-c", script)
    terminal.until("apart")
    terminal.until("up2")
    mark = os.path.basename(terminal.program.folder)
    assert len(list(processes.with_token(mark, ("BERTH_TERMINAL",)))) >= 3
    terminal.program.close()
    bench.wake()
    until(lambda: not list(processes.with_token(mark, ("BERTH_TERMINAL",))))
    assert bench.phase == "running"


@NAMESPACES
def test_it_ends_with_the_worker(bench: StepBench, pid_namespace: bool) -> None:
    start(bench, pid_namespace=pid_namespace)
    terminal = opened(bench, "sh", "-c", "trap '' TERM HUP; echo in; sleep 600")
    terminal.until("in\n")
    bench.stop(0.0)
    assert bench.end()["stopped"]
    mark = os.path.basename(terminal.program.folder)
    assert not list(processes.with_token(mark, ("BERTH_TERMINAL",)))


def test_a_killed_step_takes_it_along(bench: StepBench) -> None:
    start(bench)
    terminal = opened(bench, "sh", "-c", "echo in; sleep 600")
    terminal.until("in\n")
    os.kill(bench.state["pid"], 9)
    mark = os.path.basename(terminal.program.folder)
    until(lambda: not list(processes.with_token(mark, ("BERTH_TERMINAL",))))
    until(lambda: not os.read(terminal.program.status, 10))


@NAMESPACES
def test_nothing_starts_while_the_worker_is_stopped(bench: StepBench, pid_namespace: bool) -> None:
    """It could continue the worker in the middle of a drill."""
    start(bench, pid_namespace=pid_namespace)
    inject(bench, "stop", 3_600_000)
    until(lambda: is_stopped(bench))
    terminal = opened(bench, "sh", "-c", "kill -CONT $(cat pid); echo in")
    for _ in range(20):
        bench.wake()
        time.sleep(0.02)
    terminal.read()
    assert terminal.status == b"" and is_stopped(bench)
    inject(bench, "none", 0)
    assert terminal.end().output == "in\n"


def test_a_step_of_an_earlier_release_has_no_terminals(bench: StepBench) -> None:
    start(bench)
    allocation = allocation_of(bench)
    os.kill(bench.state["pid"], signal.SIGSTOP)
    values = {key: value for key, value in bench.state.items() if key != "terminals"}
    files.write_json(str(bench.folder / "state.json"), values)
    agent = SimpleNamespace(lock=threading.Lock(), workers=[allocation])
    request = TerminalRequest(
        terminal_id="0" * 32,
        allocation_id=allocation.allocation_id,
        command=(),
        tty=False,
        term="",
        rows=1,
        columns=1,
    )
    with pytest.raises(TerminalRefused) as refused:
        NodeTerminals(agent)._allocation(request)  # type: ignore[arg-type]
    assert refused.value.reason == "step_too_old"


def test_requests_that_are_wrong_harm_no_worker(bench: StepBench) -> None:
    start(bench)
    folder = bench.folder / "terminals" / "x"
    folder.mkdir(parents=True)
    files.write_atomic(str(folder / "request.json"), b"{")
    bench.wake()
    terminal = opened(bench, "echo", "still here")
    assert terminal.end().output == "still here\n"
    shutil.rmtree(folder)
    assert bench.phase == "running"
